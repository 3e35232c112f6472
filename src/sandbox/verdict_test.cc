#include "sandbox/verdict.h"

#include <signal.h>

#include <gtest/gtest.h>

namespace atl::sandbox {
namespace {

using agent::Cause;
using agent::Ending;
using agent::LimitBit;

constexpr uint16_t kPids = static_cast<uint16_t>(LimitBit::kPids);
constexpr uint16_t kDisk = static_cast<uint16_t>(LimitBit::kDisk);
constexpr uint16_t kOthers = agent::kAllLimitBits & ~(kPids | kDisk);

struct Case {
  Cause cause;
  Ending ending;
  uint8_t status;
  uint16_t limits_hit;
  Verdict verdict;
};

agent::Exit exit_of(const Case& given) {
  agent::Exit exit{};
  exit.ending = given.ending;
  exit.status = given.status;
  exit.cause = given.cause;
  exit.limits_hit = given.limits_hit;
  return exit;
}

TEST(Verdict, IsTheFirstThatApplies) {
  constexpr uint16_t kAll = agent::kAllLimitBits;
  const Case kCases[] = {
      // Who ended it comes before how it ended and before every limit that it touched.
      {Cause::kClient, Ending::kSignaled, SIGTERM, 0, Verdict::kKilled},
      {Cause::kClient, Ending::kSignaled, SIGSYS, kAll, Verdict::kKilled},
      {Cause::kClient, Ending::kExited, 0, 0, Verdict::kKilled},
      {Cause::kWallTime, Ending::kSignaled, SIGKILL, 0, Verdict::kWallTime},
      {Cause::kWallTime, Ending::kSignaled, SIGSYS, kAll, Verdict::kWallTime},
      {Cause::kWallTime, Ending::kExited, 0, kAll, Verdict::kWallTime},
      {Cause::kCpuTime, Ending::kSignaled, SIGKILL, 0, Verdict::kCpuTime},
      {Cause::kCpuTime, Ending::kSignaled, SIGSYS, kAll, Verdict::kCpuTime},
      {Cause::kOutput, Ending::kSignaled, SIGKILL, 0, Verdict::kOutputLimit},
      {Cause::kOutput, Ending::kSignaled, SIGSYS, kAll, Verdict::kOutputLimit},
      {Cause::kMemory, Ending::kSignaled, SIGKILL, 0, Verdict::kOom},
      {Cause::kMemory, Ending::kSignaled, SIGSYS, kAll, Verdict::kOom},
      {Cause::kMemory, Ending::kExited, 137, kAll, Verdict::kOom},
      {Cause::kProgram, Ending::kSignaled, SIGSYS, 0, Verdict::kForbiddenSyscall},
      {Cause::kProgram, Ending::kSignaled, SIGSYS, kAll, Verdict::kForbiddenSyscall},
      // Only a signal: an exit code of the same number is the program's own.
      {Cause::kProgram, Ending::kExited, SIGSYS, 0, Verdict::kNonzero},
      {Cause::kProgram, Ending::kExited, 1, kPids, Verdict::kPidsLimit},
      {Cause::kProgram, Ending::kSignaled, SIGABRT, kPids, Verdict::kPidsLimit},
      {Cause::kProgram, Ending::kExited, 1, kPids | kDisk, Verdict::kPidsLimit},
      {Cause::kProgram, Ending::kExited, 1, kDisk, Verdict::kDiskLimit},
      {Cause::kProgram, Ending::kSignaled, SIGBUS, kDisk | kOthers, Verdict::kDiskLimit},
      {Cause::kProgram, Ending::kSignaled, SIGSEGV, 0, Verdict::kSignal},
      // A kill that we did not send and no counter explains is a signal, not a guess at memory.
      {Cause::kProgram, Ending::kSignaled, SIGKILL, kOthers, Verdict::kSignal},
      {Cause::kProgram, Ending::kExited, 1, kOthers, Verdict::kNonzero},
      // Who gets along with a limit has ended well.
      {Cause::kProgram, Ending::kExited, 0, kAll, Verdict::kOk},
      {Cause::kProgram, Ending::kExited, 0, 0, Verdict::kOk},
  };
  size_t line = 0;
  for (const Case& given : kCases)
    EXPECT_EQ(verdict_name(verdict_of(exit_of(given))), verdict_name(given.verdict))
        << "case " << line++;
}

TEST(Verdict, EveryOneHasItsNameInTheOrderOfTheContract) {
  constexpr std::string_view kNames[] = {
      "sandbox_gone", "platform_error", "killed",        "wall_time",
      "cpu_time",     "output_limit",   "oom",           "forbidden_syscall",
      "pids_limit",   "disk_limit",     "compile_error", "exception",
      "interrupted",  "signal",         "nonzero",       "ok"};
  ASSERT_EQ(std::size(kNames), static_cast<size_t>(Verdict::kOk) + 1);
  for (size_t i = 0; i < std::size(kNames); ++i)
    EXPECT_EQ(verdict_name(static_cast<Verdict>(i)), kNames[i]);
}

TEST(Verdict, OnlyWhatTheCompilerSaysItselfIsACompileError) {
  EXPECT_EQ(verdict_after_compile("nonzero", kPids), "compile_error");
  EXPECT_EQ(verdict_after_compile("signal", 0), "compile_error");
  for (std::string_view other :
       {"sandbox_gone", "platform_error", "killed", "wall_time", "cpu_time", "output_limit", "oom",
        "forbidden_syscall", "pids_limit", "disk_limit"})
    EXPECT_EQ(verdict_after_compile(other, agent::kAllLimitBits), other);
}

TEST(Verdict, LimitsHitNameEveryLimitThatWasTouched) {
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(limit_names(0), Names{});
  EXPECT_EQ(limit_names(agent::kAllLimitBits),
            (Names{"wall_time", "cpu_time", "output", "memory", "pids", "disk"}));
  EXPECT_EQ(limit_names(kPids | kDisk), (Names{"pids", "disk"}));
}

TEST(Verdict, LimitsHitIncludeTheOneThatEndedItAndOutputThatWasCut) {
  auto names = [](Cause cause, uint64_t cut) {
    agent::Exit exit = exit_of({cause, Ending::kSignaled, SIGKILL, kPids, Verdict::kOk});
    exit.stderr_cut = cut;
    return limit_names(limits_hit_of(exit));
  };
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(names(Cause::kProgram, 0), Names{"pids"});
  EXPECT_EQ(names(Cause::kClient, 0), Names{"pids"});
  EXPECT_EQ(names(Cause::kProgram, 1), (Names{"output", "pids"}));
  EXPECT_EQ(names(Cause::kWallTime, 0), (Names{"wall_time", "pids"}));
  EXPECT_EQ(names(Cause::kCpuTime, 0), (Names{"cpu_time", "pids"}));
  EXPECT_EQ(names(Cause::kOutput, 0), (Names{"output", "pids"}));
  EXPECT_EQ(names(Cause::kMemory, 0), (Names{"memory", "pids"}));
}

}  // namespace
}  // namespace atl::sandbox
