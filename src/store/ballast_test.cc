#include "store/ballast.h"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "store/test_directory.h"

namespace atl::store {
namespace {

uint64_t blocks_of(const std::string& path) {
  struct stat status = {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return static_cast<uint64_t>(status.st_blocks) * 512;
}

TEST(Ballast, IsRealRoomThatIsGivenUpPieceByPieceAndComesBack) {
  TestDirectory directory;
  std::string path = directory / "ballast";
  auto ballast = Ballast::open(path);
  ASSERT_TRUE(ballast.ok());
  EXPECT_EQ(ballast->bytes(), kBallastBytes);
  EXPECT_GE(blocks_of(path), kBallastBytes);
  uint64_t given = 0;
  while (ballast->give_up()) {
    given += kBallastPieceBytes;
    EXPECT_LT(blocks_of(path), kBallastBytes - given + kBallastPieceBytes);
  }
  EXPECT_EQ(given, kBallastBytes);
  EXPECT_EQ(ballast->bytes(), 0u);
  EXPECT_FALSE(ballast->give_up());
  ballast->restore();
  EXPECT_EQ(ballast->bytes(), kBallastBytes);
  EXPECT_GE(blocks_of(path), kBallastBytes);
}

TEST(Ballast, WhatWasGivenUpIsMissingAfterARestartUntilThereIsRoom) {
  TestDirectory directory;
  std::string path = directory / "ballast";
  ASSERT_TRUE(Ballast::open(path).ok());
  EXPECT_EQ(Ballast::open(path)->bytes(), kBallastBytes);
}

}  // namespace
}  // namespace atl::store
