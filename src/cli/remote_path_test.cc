#include "cli/remote_path.h"

#include <gtest/gtest.h>

namespace atl::cli {
namespace {

TEST(RemotePath, IsAnIdAColonAndAPath) {
  auto place = split_remote_path("work:/tmp/a:b");
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->sandbox, "work");
  EXPECT_EQ(place->path, "/tmp/a:b");
  EXPECT_EQ(split_remote_path("work:a")->path, "/home/user/a");
  EXPECT_EQ(split_remote_path("work:")->path, "/home/user");
  for (const char* local : {"a", "./a:b", "/a:b", "A:b", ":b", "-"})
    EXPECT_FALSE(split_remote_path(local).has_value()) << local;
}

TEST(RemotePath, TheLastNameOfAPath) {
  EXPECT_EQ(base_name("/a/b/c"), "c");
  EXPECT_EQ(base_name("c/"), "c");
  EXPECT_EQ(base_name("/"), "");
  EXPECT_EQ(base_name("."), ".");
}

}  // namespace
}  // namespace atl::cli
