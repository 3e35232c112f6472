#include "sandbox/exec.h"

#include <signal.h>

#include <limits>

#include <gtest/gtest.h>

#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

std::string output_of(TestBed& bed, Sandbox& sandbox, const store::ExecRow& row,
                      agent::Stream stream) {
  auto exec = bed.run(sandbox.execs().open(row.id));
  auto bytes = (*exec)->output().read(stream, 0, 1 << 20);
  return bytes.ok() ? *bytes : "unreadable";
}

struct Ending {
  std::vector<std::string> how;  // arguments of the fake program `end`
  std::string verdict;
  uint32_t limits_hit;
};

TEST(Exec, HoweverTheProgramEndsItsOutputIsKept) {
  using agent::LimitBit;
  const Ending kEndings[] = {
      {{"program", "exit", "0"}, "ok", 0},
      {{"program", "exit", "0", "disk"}, "ok", bit(LimitBit::kDisk)},
      {{"program", "exit", "3"}, "nonzero", 0},
      {{"program", "signal", "11"}, "signal", 0},
      {{"program", "signal", "31"}, "forbidden_syscall", 0},
      {{"program", "exit", "1", "pids"}, "pids_limit", bit(LimitBit::kPids)},
      {{"program", "exit", "1", "disk"}, "disk_limit", bit(LimitBit::kDisk)},
      {{"memory", "signal", "9"}, "oom", bit(LimitBit::kMemory)},
      {{"output", "signal", "9"}, "output_limit", bit(LimitBit::kOutput)},
      {{"cpu_time", "signal", "9"}, "cpu_time", bit(LimitBit::kCpuTime)},
      {{"wall_time", "signal", "9"}, "wall_time", bit(LimitBit::kWallTime)},
      {{"client", "signal", "15"}, "killed", 0},
  };
  TestBed bed;
  auto sandbox = bed.create();
  for (const Ending& ending : kEndings) {
    std::vector<std::string> arguments{"end"};
    arguments.insert(arguments.end(), ending.how.begin(), ending.how.end());
    ExecId id = bed.run_exec(*sandbox, arguments).id;
    // As stored, not as remembered.
    auto stored = bed.run(sandbox->execs().find(id));
    ASSERT_TRUE(stored.ok() && stored->has_value()) << ending.verdict;
    const store::ExecRow& row = **stored;
    EXPECT_EQ(row.verdict, ending.verdict);
    EXPECT_EQ(row.limits_hit, ending.limits_hit) << ending.verdict;
    EXPECT_EQ(output_of(bed, *sandbox, row, agent::Stream::kStdout), "partial\n") << ending.verdict;
    EXPECT_EQ(output_of(bed, *sandbox, row, agent::Stream::kStderr), "partial\n") << ending.verdict;
    EXPECT_EQ(row.stdout_bytes, 8u) << ending.verdict;
    EXPECT_EQ(row.read_bytes, 5000u);
    EXPECT_EQ(row.written_bytes, 6000u);
  }
}

TEST(Exec, OutputIsKeptWhenTheAgentDies) {
  TestBed bed;
  auto sandbox = bed.create();
  auto exec = bed.start_exec(*sandbox, {"hang", "so", "far"});
  bed.settle();
  bed.driver->kill_agent(sandbox->id());
  bed.settle();
  EXPECT_EQ(exec->row().verdict, "sandbox_gone");
  EXPECT_EQ(exec->row().stdout_bytes, 7u);
  EXPECT_EQ(output_of(bed, *sandbox, exec->row(), agent::Stream::kStdout), "so far\n");
}

TEST(Exec, OutputIsKeptWhenTheAgentForgetsTheExec) {
  TestBed bed;
  auto sandbox = bed.create();
  auto exec = bed.start_exec(*sandbox, {"hang", "so", "far"});
  bed.settle();
  bed.driver->forget_execs(sandbox->id());
  bed.driver->drop_stream(sandbox->id());
  bed.settle();
  EXPECT_EQ(exec->row().verdict, "platform_error");
  EXPECT_FALSE(exec->row().failure.empty());
  EXPECT_EQ(exec->row().stdout_bytes, 7u);
  EXPECT_EQ(output_of(bed, *sandbox, exec->row(), agent::Stream::kStdout), "so far\n");
}

TEST(Exec, ItsLimitsReachTheAgent) {
  TestBed bed;
  auto sandbox = bed.create();
  ExecRequest request;
  request.arguments = {"limits"};
  request.cpu_time_ms = 1500;
  request.output_limit_bytes = 4096;
  request.open_files = 20;
  request.on_output_limit = agent::OnOutputLimit::kKill;
  auto exec = bed.run(sandbox->start_exec(request, "{}"));
  ASSERT_TRUE(exec.ok());
  bed.settle();
  EXPECT_EQ(output_of(bed, *sandbox, (*exec)->row(), agent::Stream::kStdout),
            "1500 4096 20 kill\n");
}

// A number that no column holds could never be stored: the stream would break for ever.
TEST(Exec, ExitWithAnImpossibleFigureIsAViolation) {
  TestBed bed;
  auto sandbox = bed.create();
  auto exec = bed.start_exec(*sandbox, {"hang"});
  bed.settle();
  agent::Exit exit{};
  EXPECT_TRUE(exec->check_exit(exit).ok());
  exit.written_bytes = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(exec->check_exit(exit).error().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace atl::sandbox
