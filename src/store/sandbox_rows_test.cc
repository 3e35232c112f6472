#include "store/sandbox_rows.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "store/catalog.h"
#include "store/sha256.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

class SandboxRowsTest : public testing::Test {
 protected:
  SandboxRowsTest() : catalog_(std::move(Catalog::open(directory_ / "atoll.db")).value()) {}

  SandboxRow row(int64_t created_at_ms = 1000) {
    return SandboxRow{.id = SandboxId::draw(),
                      .tenant = kLocalTenant,
                      .template_name = "python",
                      .image = sha256("image"),
                      .created_at_ms = created_at_ms,
                      .sequence = catalog_->sequence().draw()};
  }
  SandboxId insert(const SandboxRow& one) {
    auto inserted = rows().insert(one);
    EXPECT_TRUE(inserted.ok()) << inserted.error().message();
    return one.id;
  }
  SandboxRow named(const std::string& name) {
    SandboxRow one = row();
    one.name = name;
    return one;
  }
  std::vector<SandboxId> list(const SandboxQuery& query) {
    auto page = rows().list(kLocalTenant, query);
    EXPECT_TRUE(page.ok()) << page.error().message();
    std::vector<SandboxId> ids;
    for (const SandboxRow& one : *page) ids.push_back(one.id);
    return ids;
  }
  SandboxRows& rows() { return catalog_->sandboxes(); }

  TestDirectory directory_;
  std::unique_ptr<Catalog> catalog_;
};

TEST_F(SandboxRowsTest, NameIsOfOneSandboxOfATenant) {
  insert(named("build"));
  auto second = rows().insert(named("build"));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kConflict);
  EXPECT_EQ(second.error().reason(), "name_taken");
  insert(named("builds"));
  insert(row());
  insert(row());  // any number without a name
  SandboxRow foreign = named("build");
  foreign.tenant = catalog_->tenants().insert("other", 1).value();
  insert(foreign);
}

TEST_F(SandboxRowsTest, NameIsFreeOnceItsSandboxIsBeingDeleted) {
  SandboxId first = insert(named("build"));
  ASSERT_TRUE(rows().set_state(kLocalTenant, first, "failed", "died").ok());
  EXPECT_FALSE(rows().insert(named("build")).ok());
  ASSERT_TRUE(rows().set_state(kLocalTenant, first, "deleting", "").ok());
  insert(named("build"));
  EXPECT_FALSE(rows().insert(named("build")).ok());
}

TEST_F(SandboxRowsTest, ChangeKeepsWhatMayChangeAndNothingElse) {
  SandboxRow first = named("build");
  first.ttl_from_ms = 1000;
  insert(first);
  SandboxRow other = first;
  other.name = "other";
  other.state = "failed";
  other.generation = 9;
  other.cpu_millis = 1;
  other.memory_bytes = 2;
  other.pids = 3;
  other.disk_bytes = 4;
  other.output_bytes = 5;
  other.open_files = 6;
  other.disk_bytes_per_second = 7;
  other.cpu_time_ms = 8;
  other.ttl_ms = 9;
  other.ttl_from_ms = 10;
  other.idle_ttl_ms = 11;
  other.metadata = R"({"a":"b"})";
  other.limits_unsettled = true;
  other.files_only_under_pressure = true;
  ASSERT_TRUE(rows().change(other).ok());
  SandboxRow back = rows().find(kLocalTenant, first.id).value().value();
  EXPECT_EQ(back.cpu_millis, 1u);
  EXPECT_EQ(back.memory_bytes, 2u);
  EXPECT_EQ(back.pids, 3u);
  EXPECT_EQ(back.disk_bytes, 4u);
  EXPECT_EQ(back.output_bytes, 5u);
  EXPECT_EQ(back.open_files, 6u);
  EXPECT_EQ(back.disk_bytes_per_second, 7u);
  EXPECT_EQ(back.cpu_time_ms, 8u);
  EXPECT_EQ(back.ttl_ms, 9u);
  EXPECT_EQ(back.ttl_from_ms, 10);
  EXPECT_EQ(back.idle_ttl_ms, 11u);
  EXPECT_EQ(back.metadata, other.metadata);
  EXPECT_TRUE(back.limits_unsettled);
  EXPECT_TRUE(back.files_only_under_pressure);
  EXPECT_EQ(back.name, "build");
  EXPECT_EQ(back.state, "creating");
  EXPECT_EQ(back.generation, 1u);
  other.tenant = catalog_->tenants().insert("other", 1).value();
  EXPECT_EQ(rows().change(other).error().code(), Code::kNotFound);
}

TEST_F(SandboxRowsTest, ListsOneState) {
  SandboxId creating = insert(row(1));
  SandboxId running = insert(row(2));
  ASSERT_TRUE(rows().set_state(kLocalTenant, running, "running", "").ok());
  EXPECT_EQ(list({.state = "running"}), std::vector{running});
  EXPECT_EQ(list({.state = "creating"}), std::vector{creating});
  EXPECT_TRUE(list({.state = "failed"}).empty());
  EXPECT_EQ(list({}).size(), 2u);
}

TEST_F(SandboxRowsTest, ListsWhatHasAllOfTheMetadata) {
  SandboxRow one = row(1), two = row(2), none = row(3);
  one.metadata = R"({"team":"a","stage":"dev"})";
  two.metadata = R"({"team":"a","stage":"live","a.b\"$[0]":"x"})";
  for (const SandboxRow& each : {one, two, none}) insert(each);
  EXPECT_EQ(list({.metadata = R"([["team","a"]])"}), (std::vector{one.id, two.id}));
  EXPECT_EQ(list({.metadata = R"([["team","a"],["stage","live"]])"}), std::vector{two.id});
  EXPECT_EQ(list({.metadata = R"([["a.b\"$[0]","x"]])"}), std::vector{two.id});
  EXPECT_TRUE(list({.metadata = R"([["team","a"],["team","b"]])"}).empty());
  EXPECT_TRUE(list({.metadata = R"([["team",""]])"}).empty());
  EXPECT_TRUE(list({.metadata = R"([["a",""]])"}).empty());
  EXPECT_EQ(list({.metadata = "[]"}).size(), 3u);
}

// Whatever is made and deleted meanwhile: each sandbox that was there all the time comes once.
TEST_F(SandboxRowsTest, PagesAreExactWhileRowsComeAndGo) {
  std::vector<SandboxId> stay, seen;
  SandboxRow marked = row();
  marked.metadata = R"({"stays":"yes"})";
  std::vector<SandboxId> go;
  for (int i = 0; i < 60; ++i) {
    SandboxRow one = i % 3 == 0 ? row(i / 7) : marked;
    one.id = SandboxId::draw();
    one.sequence = catalog_->sequence().draw();
    one.created_at_ms = i / 7;  // several of one moment
    (i % 3 == 0 ? go : stay).push_back(insert(one));
  }
  SandboxQuery query{.metadata = R"([["stays","yes"]])", .limit = 7};
  while (true) {
    auto page = rows().list(kLocalTenant, query);
    ASSERT_TRUE(page.ok());
    if (page->empty()) break;
    for (const SandboxRow& one : *page) seen.push_back(one.id);
    query.after = SandboxCursor::of(page->back());
    for (int i = 0; i < 2 && !go.empty(); ++i, go.pop_back())
      ASSERT_TRUE(rows().remove(kLocalTenant, go.back()).ok());
    insert(row(page->back().created_at_ms));
    insert(row(0));
  }
  std::sort(stay.begin(), stay.end());
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, stay);
}

// Who pages while others create must see them all: none has a place before one that was read.
TEST_F(SandboxRowsTest, WhatIsMadeInTheMillisecondOfTheCursorIsInALaterPage) {
  std::vector<SandboxId> made, seen;
  SandboxQuery query{.limit = 1};
  for (int i = 0; i < 20; ++i) {
    made.push_back(insert(row(1000 - i % 2)));  // the clock is set back now and then
    auto page = rows().list(kLocalTenant, query);
    ASSERT_TRUE(page.ok());
    ASSERT_EQ(page->size(), 1u) << i;
    seen.push_back(page->front().id);
    query.after = SandboxCursor::of(page->front());
  }
  EXPECT_EQ(seen, made);
}

}  // namespace
}  // namespace atl::store
