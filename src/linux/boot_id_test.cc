#include "linux/boot_id.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <regex>

#include <gtest/gtest.h>

#include "base/file.h"

namespace atl::linux {
namespace {

TEST(BootId, IsAUuidAndAnotherOneEachTimeInTheSameFile) {
  char path[] = "/tmp/atoll-boot-id-test-XXXXXX";
  std::string directory = mkdtemp(path);
  Fd opened = *open_file(directory, O_RDONLY | O_DIRECTORY);
  std::string file = directory + "/" + kBootIdName;
  ASSERT_TRUE(draw_boot_id(opened.get()).ok());
  Fd covered = *open_file(file, O_RDONLY);  // as whoever has it mounted
  std::string first = *read_file(file);
  std::regex form("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n");
  EXPECT_TRUE(std::regex_match(first, form)) << first;
  ASSERT_TRUE(draw_boot_id(opened.get()).ok());
  std::string second = *read_all(covered.get());
  EXPECT_TRUE(std::regex_match(second, form)) << second;
  EXPECT_NE(first, second);
  unlink(file.c_str());
  rmdir(directory.c_str());
}

}  // namespace
}  // namespace atl::linux
