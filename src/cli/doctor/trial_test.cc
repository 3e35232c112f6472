#include "cli/doctor/trial.h"

#include <errno.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace atl::cli {
namespace {

class TrialTest : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD) << "a child was left behind";
  }
};

TEST_F(TrialTest, GivesTheOutcomeOfItsWork) {
  EXPECT_TRUE(run_trial({}, [] { return Result<void>(); }).ok());
  auto failed = run_trial({}, [] { return Result<void>(Error::from_errno("try", ENOTBLK)); });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().system_errno(), ENOTBLK);
  EXPECT_NE(failed.error().message().find("try"), std::string::npos);
}

TEST_F(TrialTest, DeathIsNoSuccess) {
  auto died = run_trial({}, []() -> Result<void> { _exit(0); });
  ASSERT_FALSE(died.ok());
  EXPECT_EQ(died.error().system_errno(), ECHILD);
}

TEST_F(TrialTest, IsRootOfItsUserNamespace) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, because it maps the ids of isolates";
  auto result = run_trial({.namespaces = CLONE_NEWUSER | CLONE_NEWUTS}, []() -> Result<void> {
    if (geteuid() != 0) return Error(Code::kDenied, "not root");
    if (sethostname("trial", 5) != 0) return Error::system("sethostname");
    return {};
  });
  EXPECT_TRUE(result.ok()) << result.error().message();
}

TEST_F(TrialTest, WithoutItsPlaceNothingIsTried) {
  auto result = run_trial({.cgroup = 0x7fff0000}, [] { return Result<void>(); });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Code::kUnavailable);
  EXPECT_EQ(state_after(result), FindingState::kUnknown);
}

TEST_F(TrialTest, AFindingHasARemedyOnlyWhenSomethingIsMissing) {
  TrialReading reading = {
      .name = "x", .kind = FindingClass::kExtra, .found = "there", .remedy = "fetch it"};
  EXPECT_EQ(judge(reading, {}).found, "there");
  EXPECT_EQ(judge(reading, {}).remedy, "");
  Finding missing = judge(reading, Error::from_errno("try", ENODEV));
  EXPECT_EQ(missing.state, FindingState::kMissing);
  EXPECT_EQ(missing.remedy, "fetch it");
}

}  // namespace
}  // namespace atl::cli
