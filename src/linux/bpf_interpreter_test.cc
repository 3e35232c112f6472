#include "linux/bpf_interpreter.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "linux/syscall_filter.h"

namespace atl::linux {
namespace {

using Program = std::vector<sock_filter>;

sock_filter load(uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
sock_filter give(uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
sock_filter if_equal(uint32_t value, uint8_t yes, uint8_t no) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no);
}

TEST(BpfInterpreter, RunsEachInstruction) {
  seccomp_data call = {7, 9, 0, {0x1'0000'00f0, 2, 0, 0, 0, 0}};
  uint32_t first = offsetof(seccomp_data, args);
  EXPECT_EQ(*run_filter_program(Program{give(5)}, call), 5u);
  EXPECT_EQ(*run_filter_program(Program{load(0), if_equal(7, 0, 1), give(1), give(2)}, call), 1u);
  EXPECT_EQ(*run_filter_program(Program{load(4), if_equal(7, 0, 1), give(1), give(2)}, call), 2u);
  EXPECT_EQ(
      *run_filter_program(Program{load(first + 4), if_equal(1, 0, 1), give(1), give(2)}, call), 1u)
      << "the high half of an argument";
  Program masked = {load(first), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x30), if_equal(0x30, 0, 1),
                    give(1), give(2)};
  EXPECT_EQ(*run_filter_program(masked, call), 1u);
  Program jump = {BPF_STMT(BPF_JMP | BPF_JA, 1), give(1), give(2)};
  EXPECT_EQ(*run_filter_program(jump, call), 2u);
  struct {
    uint16_t operation;
    uint32_t constant, answer;
  } const kJumps[] = {{BPF_JGT, 6, 1}, {BPF_JGT, 7, 2},  {BPF_JGE, 7, 1},
                      {BPF_JGE, 8, 2}, {BPF_JSET, 4, 1}, {BPF_JSET, 8, 2}};
  for (const auto& [operation, constant, answer] : kJumps) {
    auto code = static_cast<uint16_t>(BPF_JMP | operation | BPF_K);
    Program program = {load(0), {code, 0, 1, constant}, give(1), give(2)};
    EXPECT_EQ(*run_filter_program(program, call), answer) << operation << " " << constant;
  }
}

TEST(BpfInterpreter, RefusesWhatItCannotRunToItsEnd) {
  seccomp_data call = {};
  const Program kBad[] = {
      {},
      Program(BPF_MAXINSNS + 1, give(1)),
      {load(0)},
      {load(2), give(1)},
      {load(sizeof(seccomp_data)), give(1)},
      {if_equal(0, 1, 0), give(1)},
      {if_equal(0, 0, 1), give(1)},
      {BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff), give(1)},
      {BPF_STMT(BPF_LD | BPF_MEM, 0), give(1)},
      {BPF_STMT(BPF_RET | BPF_A, 0)},
  };
  for (const Program& program : kBad)
    EXPECT_FALSE(run_filter_program(program, call).ok()) << program.size();
}

TEST(SyscallFilter, AnswersForTheRestOfTheProcess) {
  pid_t child = fork();
  if (child == 0) {
    Program program = {load(0), if_equal(SYS_getppid, 0, 1), give(SECCOMP_RET_ERRNO | EDOM),
                       give(SECCOMP_RET_ALLOW)};
    bool refused = !load_syscall_filter(Program{}).ok();
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    bool loaded = load_syscall_filter(program).ok();
    bool answered = syscall(SYS_getppid) == -1 && errno == EDOM && getpid() > 0;
    _exit(refused && loaded && answered ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace atl::linux
