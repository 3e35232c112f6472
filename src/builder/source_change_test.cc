#include "builder/source_change.h"

#include <stdlib.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"

namespace atl::builder {
namespace {

TEST(SourceChanges, AreMadeWhereTheTextIsExactlyOnce) {
  char directory[] = "/tmp/source-change-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  std::string path = std::string(directory) + "/a.go";
  ASSERT_TRUE(replace_file(path, "if one { two() }\nthree()\n", 0644).ok());
  EXPECT_TRUE(
      change_sources(directory, {{"a.go", "one", "(one || four)"}, {"a.go", "\nthree()", ""}})
          .ok());
  EXPECT_EQ(*read_file(path), "if (one || four) { two() }\n");
  for (const char* wrong : {"five", "o"})
    EXPECT_FALSE(change_sources(directory, {{"a.go", wrong, "x"}}).ok()) << wrong;
  EXPECT_FALSE(change_sources(directory, {{"b.go", "one", "x"}}).ok());
  EXPECT_EQ(*read_file(path), "if (one || four) { two() }\n");
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace atl::builder
