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
            .current = true};
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
