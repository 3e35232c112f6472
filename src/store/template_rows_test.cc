#include "store/template_rows.h"

#include <gtest/gtest.h>

#include "store/catalog.h"
#include "store/sha256.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

class TemplateRowsTest : public testing::Test {
 protected:
  TemplateRowsTest() : catalog_(*Catalog::open(directory_.path() + "/atoll.db")) {}
  TemplateRow row(const std::string& name, const std::string& image, int64_t at_ms) {
    return {.tenant = kLocalTenant,
            .name = name,
            .image = sha256(image),
            .inputs = sha256("inputs of " + image),
            .pack = sha256("pack of " + image),
            .manifest = "name = \"" + name + "\"",
            .image_bytes = 42,
            .created_at_ms = at_ms,
            .current = true,
            .sequence = catalog_->sequence().draw()};
  }
  TemplateRows& rows() { return catalog_->templates(); }

  TestDirectory directory_;
  std::unique_ptr<Catalog> catalog_;
};

TEST_F(TemplateRowsTest, TheLastOneIsCurrentAndSomeBeforeItAreKept) {
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(rows().put(row("a", "image " + std::to_string(i), i)).ok());
  auto all = rows().all();
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), static_cast<size_t>(kKeptTemplateVersions));
  EXPECT_EQ((*all)[0].image, sha256("image 4"));
  EXPECT_TRUE((*all)[0].current);
  EXPECT_EQ((*all)[1].image, sha256("image 3"));
  EXPECT_FALSE((*all)[1].current);
}

TEST_F(TemplateRowsTest, TheNewestAreKeptAlsoIfTheClockWasSetBack) {
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(rows().put(row("a", "image " + std::to_string(i), 1000 - i)).ok());
  auto all = rows().all();
  ASSERT_EQ(all->size(), static_cast<size_t>(kKeptTemplateVersions));
  for (int i = 0; i < kKeptTemplateVersions; ++i)
    EXPECT_EQ((*all)[static_cast<size_t>(i)].image, sha256("image " + std::to_string(4 - i)));
}

TEST_F(TemplateRowsTest, TheSameImageAgainIsOneVersion) {
  ASSERT_TRUE(rows().put(row("a", "one", 1)).ok());
  ASSERT_TRUE(rows().put(row("a", "two", 2)).ok());
  ASSERT_TRUE(rows().put(row("a", "one", 3)).ok());
  auto all = rows().all();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].image, sha256("one"));
  EXPECT_EQ((*all)[0].created_at_ms, 3);
  EXPECT_EQ((*all)[0].manifest, "name = \"a\"");
  EXPECT_EQ((*all)[0].pack, sha256("pack of one"));
}

TEST_F(TemplateRowsTest, AVersionWhoseTagHasMovedIsNotKept) {
  ASSERT_TRUE(rows().put(row("a", "first", 0), {"v1"}).ok());
  for (int i = 1; i < 6; ++i)
    ASSERT_TRUE(rows().put(row("a", "image " + std::to_string(i), i)).ok());
  EXPECT_EQ(rows().all()->size(), static_cast<size_t>(kKeptTemplateVersions) + 1);
  ASSERT_TRUE(rows().put_tags({{kLocalTenant, "a", "v1", sha256("image 5"), 7}}).ok());
  EXPECT_EQ(rows().all()->size(), static_cast<size_t>(kKeptTemplateVersions));
}

TEST_F(TemplateRowsTest, AVersionIsKeptAsLongAsItHasATag) {
  ASSERT_TRUE(rows().put(row("a", "first", 0), {"v1", "stable"}).ok());
  for (int i = 1; i < 6; ++i)
    ASSERT_TRUE(rows().put(row("a", "image " + std::to_string(i), i)).ok());
  auto tags = rows().all_tags();
  ASSERT_TRUE(tags.ok());
  ASSERT_EQ(tags->size(), 2u);
  EXPECT_EQ((*tags)[0].tag, "stable");
  EXPECT_EQ((*tags)[1].tag, "v1");
  EXPECT_EQ((*tags)[1].image, sha256("first"));
  EXPECT_EQ(rows().all()->size(), static_cast<size_t>(kKeptTemplateVersions) + 1);
  ASSERT_TRUE(rows().put_tags({{kLocalTenant, "a", "stable", sha256("image 5"), 7}}).ok());
  EXPECT_EQ(rows().all()->size(), static_cast<size_t>(kKeptTemplateVersions) + 1);
  ASSERT_TRUE(rows().remove_tags(kLocalTenant, "a", {"v1", "never"}).ok());
  EXPECT_EQ(rows().all()->size(), static_cast<size_t>(kKeptTemplateVersions));
  ASSERT_EQ(rows().all_tags()->size(), 1u);
  ASSERT_TRUE(rows().remove(kLocalTenant, "a").ok());
  EXPECT_EQ(rows().all_tags()->size(), 0u);
}

TEST_F(TemplateRowsTest, OnlyTheTagDefaultMakesAVersionTheCurrentOne) {
  ASSERT_TRUE(rows().put(row("a", "one", 1), {"v1"}).ok());
  EXPECT_TRUE((*rows().all())[0].current) << "there was none";
  ASSERT_TRUE(rows().put(row("a", "two", 2), {"v2"}).ok());
  EXPECT_EQ((*rows().all())[0].image, sha256("one"));
  ASSERT_TRUE(rows().put(row("a", "one", 3), {"v3"}).ok());
  EXPECT_TRUE((*rows().all())[0].current);
  EXPECT_EQ((*rows().all())[0].image, sha256("one"));
  ASSERT_TRUE(rows().put_tags({{kLocalTenant, "a", "default", sha256("two"), 4}}).ok());
  EXPECT_EQ((*rows().all())[0].image, sha256("two"));
  EXPECT_EQ(rows().all_tags()->size(), 3u);
}

TEST_F(TemplateRowsTest, TagsAreBoundedAndOfVersionsThatThereAre) {
  ASSERT_TRUE(rows().put(row("a", "one", 1)).ok());
  EXPECT_FALSE(rows().put_tags({{kLocalTenant, "a", "v1", sha256("none"), 1}}).ok());
  EXPECT_FALSE(rows().put_tags({{kLocalTenant, "a", "default", sha256("none"), 1}}).ok());
  EXPECT_TRUE((*rows().all())[0].current) << "nothing half-done";
  std::vector<TemplateTag> many;
  for (int i = 0; i <= kMaxTemplateTags; ++i)
    many.push_back({kLocalTenant, "a", "t" + std::to_string(i), sha256("one"), 1});
  auto refused = rows().put_tags(many);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason(), "too_many_tags");
  EXPECT_EQ(rows().all_tags()->size(), 0u);
  many.pop_back();
  EXPECT_TRUE(rows().put_tags(many).ok());
}

TEST_F(TemplateRowsTest, AreRemovedWithAllVersionsOfOneTenantOnly) {
  auto other = catalog_->tenants().insert("other", 1);
  ASSERT_TRUE(other.ok());
  TemplateRow foreign = row("a", "foreign", 1);
  foreign.tenant = *other;
  ASSERT_TRUE(rows().put(foreign).ok());
  ASSERT_TRUE(rows().put(row("a", "one", 1)).ok());
  ASSERT_TRUE(rows().put(row("a", "two", 2)).ok());
  ASSERT_TRUE(rows().remove(kLocalTenant, "a").ok());
  EXPECT_EQ(rows().remove(kLocalTenant, "a").error().code(), Code::kNotFound);
  auto all = rows().all();
  ASSERT_EQ(all->size(), 1u);
  EXPECT_EQ((*all)[0].tenant, *other);
}

}  // namespace
}  // namespace atl::store
