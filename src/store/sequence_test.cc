// The order of rows that have one millisecond, as on a fast machine or after the clock was set
// back.
#include "store/sequence.h"

#include <gtest/gtest.h>

#include "store/catalog.h"
#include "store/sha256.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

class SequenceTest : public testing::Test {
 protected:
  void reopen() {
    catalog_.reset();
    catalog_ = std::move(Catalog::open(directory_ / "atoll.db")).value();
  }
  SandboxRow insert_sandbox() {
    SandboxRow row{.id = SandboxId::draw(), .tenant = kLocalTenant, .image = sha256("image")};
    EXPECT_TRUE(catalog_->sandboxes().insert(row).ok());
    return row;
  }

  TestDirectory directory_;
  std::unique_ptr<Catalog> catalog_ = std::move(Catalog::open(directory_ / "atoll.db")).value();
};

TEST_F(SequenceTest, ANumberOfTheSequenceIsGreaterThanAllBeforeAlsoAfterARestart) {
  std::vector<int64_t> drawn;
  for (int start = 0; start < 3; ++start) {
    for (int i = 0; i < 3; ++i) drawn.push_back(catalog_->sequence().draw());
    reopen();
  }
  EXPECT_GT(drawn.front(), 0);
  for (size_t i = 1; i < drawn.size(); ++i) EXPECT_GT(drawn[i], drawn[i - 1]) << i;
}

TEST_F(SequenceTest, WhatIsOfOneMillisecondIsListedInTheOrderOfCreation) {
  SandboxRow sandbox = insert_sandbox();
  std::vector<SnapshotId> snapshots;
  std::vector<std::string> keys;
  for (int i = 0; i < 20; ++i) {
    SnapshotRow row{.id = SnapshotId::draw(),
                    .tenant = kLocalTenant,
                    .sandbox = sandbox.id,
                    .created_at_ms = 5,
                    .sequence = catalog_->sequence().draw(),
                    .image = sha256("image")};
    ASSERT_TRUE(catalog_->snapshots().insert(row).ok());
    snapshots.push_back(row.id);
    KeyRow key{.id = random_text(16),
               .tenant = kLocalTenant,
               .name = "key",
               .hash = sha256(std::to_string(i)).bytes(),
               .created_at_ms = 5,
               .sequence = catalog_->sequence().draw()};
    ASSERT_TRUE(catalog_->keys().insert(key).ok());
    keys.push_back(key.id);
  }
  std::vector<SnapshotId> seen;
  SnapshotQuery query{.limit = 7};
  while (true) {
    auto page = catalog_->snapshots().list(kLocalTenant, query);
    ASSERT_TRUE(page.ok());
    for (const SnapshotRow& row : *page) seen.push_back(row.id);
    if (page->size() < query.limit) break;
    query.after = SnapshotCursor::parse(SnapshotCursor::of(page->back()).string());
    ASSERT_TRUE(query.after);
  }
  EXPECT_EQ(seen, snapshots);
  std::vector<std::string> listed;
  for (const KeyRow& row : *catalog_->keys().all_in_force()) listed.push_back(row.id);
  EXPECT_EQ(listed, keys);
}

TEST_F(SequenceTest, RunsOfAllContextsComeInTheOrderInWhichTheyWereAskedFor) {
  SandboxRow sandbox = insert_sandbox();
  std::vector<ContextId> contexts;
  for (int i = 0; i < 5; ++i) {
    ContextRow row{.sandbox = sandbox.id, .tenant = kLocalTenant, .id = ContextId::draw()};
    ASSERT_TRUE(catalog_->contexts().insert(row).ok());
    contexts.push_back(row.id);
  }
  std::vector<std::pair<ContextId, uint32_t>> asked, found;
  for (uint32_t number = 1; number < 5; ++number) {
    for (const ContextId& context : contexts) {
      RunRow run{.sandbox = sandbox.id,
                 .tenant = kLocalTenant,
                 .context = context,
                 .number = number,
                 .created_at_ms = 5,
                 .sequence = catalog_->sequence().draw()};
      ASSERT_TRUE(catalog_->contexts().insert_run(run).ok());
      asked.emplace_back(context, number);
    }
  }
  for (const RunRow& run : *catalog_->contexts().runs_since(kLocalTenant, sandbox.id, 0))
    found.emplace_back(run.context, run.number);
  EXPECT_EQ(found, asked);
}

TEST(SandboxCursor, TextComesBackAndNonsenseIsRefused) {
  SandboxCursor cursor{1'700'000'000'123, SandboxId::draw()};
  SnapshotCursor other{7, SnapshotId::draw()};
  auto back = SandboxCursor::parse(cursor.string());
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->sequence, cursor.sequence);
  EXPECT_EQ(back->id, cursor.id);
  for (std::string text :
       {std::string(), std::string("."), cursor.id.string(), "12x." + cursor.id.string(),
        std::string("12.s"), "99999999999999999999." + cursor.id.string(), cursor.string() + "a",
        "1700000000123-" + cursor.id.string(), other.string()})
    EXPECT_FALSE(SandboxCursor::parse(text).has_value()) << text;
}

}  // namespace
}  // namespace atl::store
