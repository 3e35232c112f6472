#include "cli/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/fixture_test.h"
#include "linux/pidfd.h"

namespace atl::cli {
namespace {

struct Outcome {
  int status;
  std::string output;
};

Outcome run_shell(const std::string& script, std::optional<Identity> identity = std::nullopt) {
  Fd shell = open_file("/bin/sh", O_PATH).value();
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Fd reader(ends[0]), writer(ends[1]);
  auto started = start_program({.program = shell.get(),
                                .arguments = {"sh", "-c", script},
                                .identity = identity,
                                .output = writer.get()});
  EXPECT_TRUE(started.ok());
  writer.reset();
  std::string output = read_all(reader.get()).value();
  return {linux::wait_for_exit(started->pidfd.get()).value(), output};
}

TEST(Process, SeesNoDescriptorAndAlmostNoEnvironmentOfItsParent) {
  ASSERT_EQ(setenv("ATOLL_TEST_SECRET", "x", 1), 0);
  Fd leaked(open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(run_shell("ls /proc/self/fd | wc -l").output, "4\n");  // 0, 1, 2 and that of ls
  EXPECT_EQ(run_shell("env | cut -d= -f1 | grep -vx -e PWD -e _ | sort").output, "LANG\nPATH\n");
  EXPECT_EQ(run_shell("readlink /proc/self/cwd /proc/self/fd/0").output, "/\n/dev/null\n");
}

TEST(Process, IsOutOfReachOfItsParentsTerminal) {
  Outcome outcome = run_shell("cut -d' ' -f6 /proc/$$/stat; echo $$");
  size_t half = outcome.output.find('\n');
  EXPECT_EQ(outcome.output.substr(0, half + 1), outcome.output.substr(half + 1));
}

TEST(Process, TakesItsIdentityBeforeItIsExecuted) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  Outcome outcome = run_shell(
      "id -u; id -g; id -G; grep -E '^(NoNewPrivs|CapPrm|CapEff|CapInh|CapAmb)' /proc/self/status",
      Identity{65534, 65533});
  EXPECT_EQ(outcome.output,
            "65534\n65533\n65533\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\n"
            "CapEff:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\n");
}

TEST(Process, StartsFromADirectoryItsUserCannotEnter) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  TempDir dir;  // mode 0700
  ASSERT_EQ(link("/bin/true", (dir / "true").c_str()) == 0 ||
                system(("cp /bin/true " + (dir / "true")).c_str()) == 0,
            true);
  Fd program = open_file(dir / "true", O_PATH).value();
  auto started = start_program(
      {.program = program.get(), .arguments = {"true"}, .identity = Identity{65534, 65534}});
  ASSERT_TRUE(started.ok());
  EXPECT_EQ(linux::wait_for_exit(started->pidfd.get()).value(), 0);
}

TEST(Process, WhatCannotBeExecutedIsAnErrorAndLeavesNoChild) {
  TempDir dir;
  write_text(dir / "text", "not a program");
  Fd program = open_file(dir / "text", O_PATH).value();
  auto started =
      start_program({.program = program.get(), .arguments = {"text"}, .identity = std::nullopt});
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().system_errno(), EACCES);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(Process, EndsByItselfWhenItListensAndByForceWhenNot) {
  Fd shell = open_file("/bin/sh", O_PATH).value();
  for (auto [script, expected] :
       {std::pair{"echo; sleep 60", Ended::kBySelf},
        std::pair{"trap '' TERM; echo; while :; do sleep 60; done", Ended::kByForce}}) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    Fd reader(ends[0]), writer(ends[1]);
    StartedProcess process = start_program({.program = shell.get(),
                                            .arguments = {"sh", "-c", script},
                                            .identity = std::nullopt,
                                            .output = writer.get()})
                                 .value();
    char byte;
    ASSERT_EQ(read(reader.get(), &byte, 1), 1);
    auto patience = expected == Ended::kByForce ? std::chrono::milliseconds(200) : test_timeout();
    EXPECT_EQ(end_process(process.pidfd.get(), patience).value(), expected);
    kill(-process.pid, SIGKILL);  // the sleep
    waitpid(process.pid, nullptr, 0);
  }
}

}  // namespace
}  // namespace atl::cli
