#include "store/disk_floor.h"

#include <sys/statvfs.h>

#include <gtest/gtest.h>

namespace atl::store {
namespace {

uint64_t free_bytes() {
  struct statvfs space;
  EXPECT_EQ(statvfs("/tmp", &space), 0);
  return space.f_bavail * space.f_frsize;
}

TEST(DiskFloor, LeavesWhatMustStayFree) {
  EXPECT_TRUE(DiskFloor("/tmp").has_room(UINT64_MAX)) << "nothing must";
  uint64_t free = free_bytes();
  DiskFloor floor("/tmp", free / 2);
  EXPECT_TRUE(floor.has_room(1));
  EXPECT_FALSE(floor.has_room(free));
  EXPECT_FALSE(DiskFloor("/tmp", free * 2).has_room(1));
  EXPECT_FALSE(DiskFloor("/does/not/exist", 1).has_room(1));
}

TEST(DiskFloor, LeavesWhatTheCallerWantsLeftAbove) {
  uint64_t free = free_bytes();
  DiskFloor floor("/tmp", free / 2);
  EXPECT_TRUE(floor.has_room(1, free / 8));
  EXPECT_FALSE(floor.has_room(1, free));
  EXPECT_FALSE(floor.has_room(1, UINT64_MAX));
}

TEST(DiskFloor, WhatWasWrittenSinceItLookedIsCounted) {
  uint64_t free = free_bytes();
  DiskFloor floor("/tmp", free / 2);
  bool had_room = true;
  for (int i = 0; i < 3 && had_room; ++i) had_room = floor.has_room(free / 4);
  EXPECT_FALSE(had_room);
}

}  // namespace
}  // namespace atl::store
