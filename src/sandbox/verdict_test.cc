#include "sandbox/verdict.h"

#include <signal.h>

#include <gtest/gtest.h>

namespace atl::sandbox {
namespace {

agent::Exit make_exit(agent::Ending ending, uint8_t status, agent::Cause cause) {
  agent::Exit exit{};
  exit.ending = ending;
  exit.status = status;
  exit.cause = cause;
  return exit;
}

TEST(Verdict, SaysWhoEndedTheProgram) {
  using agent::Cause;
  using agent::Ending;
  EXPECT_EQ(verdict_of(make_exit(Ending::kExited, 0, Cause::kProgram)), Verdict::kOk);
  EXPECT_EQ(verdict_of(make_exit(Ending::kExited, 1, Cause::kProgram)), Verdict::kNonzero);
  EXPECT_EQ(verdict_of(make_exit(Ending::kSignaled, SIGSEGV, Cause::kProgram)), Verdict::kSignal);
  EXPECT_EQ(verdict_of(make_exit(Ending::kSignaled, SIGKILL, Cause::kWallTime)),
            Verdict::kWallTime);
  EXPECT_EQ(verdict_of(make_exit(Ending::kSignaled, SIGTERM, Cause::kClient)), Verdict::kKilled);
}

TEST(Verdict, EveryOneHasItsName) {
  EXPECT_EQ(verdict_name(Verdict::kSandboxGone), "sandbox_gone");
  EXPECT_EQ(verdict_name(Verdict::kPlatformError), "platform_error");
  EXPECT_EQ(verdict_name(Verdict::kKilled), "killed");
  EXPECT_EQ(verdict_name(Verdict::kWallTime), "wall_time");
  EXPECT_EQ(verdict_name(Verdict::kSignal), "signal");
  EXPECT_EQ(verdict_name(Verdict::kNonzero), "nonzero");
  EXPECT_EQ(verdict_name(Verdict::kOk), "ok");
}

}  // namespace
}  // namespace atl::sandbox
