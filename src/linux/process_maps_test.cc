#include "linux/process_maps.h"

#include <sys/mman.h>

#include <gtest/gtest.h>

#include "base/file.h"

namespace atl::linux {
namespace {

TEST(ProcessMaps, LinesAreTakenApart) {
  auto areas = parse_maps(
      "00400000-0041f000 r--p 00001000 fe:00 1234                       /usr/bin/a program\n"
      "7f0000000000-7f0000001000 rw-s 00000000 00:01 0 \n"
      "7ffd1000-7ffd2000 ---p 00000000 00:00 0                          [stack]\n");
  ASSERT_TRUE(areas.ok());
  ASSERT_EQ(areas->size(), 3u);
  const MappedArea& first = areas->front();
  EXPECT_EQ(first.start, 0x400000u);
  EXPECT_EQ(first.end, 0x41f000u);
  EXPECT_EQ(first.protection, PROT_READ);
  EXPECT_FALSE(first.shared);
  EXPECT_EQ(first.offset, 0x1000u);
  EXPECT_EQ(first.name, "/usr/bin/a program");
  EXPECT_TRUE(first.is_of_file());
  EXPECT_EQ((*areas)[1].protection, PROT_READ | PROT_WRITE);
  EXPECT_TRUE((*areas)[1].shared);
  EXPECT_EQ((*areas)[1].name, "");
  EXPECT_EQ((*areas)[2].protection, PROT_NONE);
  EXPECT_FALSE((*areas)[2].is_of_file());
}

TEST(ProcessMaps, ALineThatCannotBeReadIsAnError) {
  for (const char* text : {"x", "1000-2000", "2000-1000 r--p 0 0:0 0 \n", "1000-2000 r--p\n",
                           "1000-2000 r--p zz 00:00 0\n"})
    EXPECT_FALSE(parse_maps(text).ok()) << text;
}

TEST(ProcessMaps, ThisProcessHasAStackAndItself) {
  auto text = read_file("/proc/self/maps", 1 << 20);
  ASSERT_TRUE(text.ok());
  auto areas = parse_maps(*text);
  ASSERT_TRUE(areas.ok()) << areas.error().message();
  auto here = reinterpret_cast<uint64_t>(&text);
  bool found = false;
  for (const MappedArea& area : *areas)
    found = found || (area.name == "[stack]" && area.start <= here && here < area.end);
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace atl::linux
