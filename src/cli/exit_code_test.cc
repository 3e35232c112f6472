#include "cli/exit_code.h"

#include <gtest/gtest.h>

namespace atl::cli {
namespace {

TEST(ExitCode, IsTheProgramsOwn) {
  EXPECT_EQ(exit_code_of({"ok", 0, std::nullopt}), 0);
  EXPECT_EQ(exit_code_of({"nonzero", 7, std::nullopt}), 7);
  EXPECT_EQ(exit_code_of({"nonzero", 255, std::nullopt}), 255);
}

TEST(ExitCode, IsOneHundredTwentyEightAndTheSignal) {
  EXPECT_EQ(exit_code_of({"signal", std::nullopt, 11}), 139);
  EXPECT_EQ(exit_code_of({"oom", std::nullopt, 9}), 137);
}

TEST(ExitCode, IsItsOwnWhenThereIsNoProgram) {
  EXPECT_EQ(exit_code_of({"compile_error", 1, std::nullopt}), kExitCompileError);
  EXPECT_EQ(exit_code_of({"compile_error", std::nullopt, 11}), kExitCompileError);
}

TEST(ExitCode, IsThatOfTimeoutWhenTheTimeWasUp) {
  EXPECT_EQ(exit_code_of({"wall_time", std::nullopt, 9}), kExitTimeout);
  EXPECT_EQ(exit_code_of({"cpu_time", 0, std::nullopt}), kExitTimeout);
}

TEST(ExitCode, IsThePlatformsWhenThePlatformFailed) {
  EXPECT_EQ(exit_code_of({"sandbox_gone", 0, std::nullopt}), kExitPlatform);
  EXPECT_EQ(exit_code_of({"platform_error", std::nullopt, 9}), kExitPlatform);
}

TEST(ExitCode, IsThePlatformsWhenTheAnswerMakesNoSense) {
  EXPECT_EQ(exit_code_of({"ok", std::nullopt, std::nullopt}), kExitPlatform);
  EXPECT_EQ(exit_code_of({"nonzero", 256, std::nullopt}), kExitPlatform);
  EXPECT_EQ(exit_code_of({"nonzero", -1, std::nullopt}), kExitPlatform);
}

}  // namespace
}  // namespace atl::cli
