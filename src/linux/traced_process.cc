#include "linux/traced_process.h"

#include <sys/ptrace.h>
#include <sys/wait.h>

namespace atl::linux {
namespace {

constexpr uint64_t kInstructionBytes = 2;  // of syscall
constexpr uint64_t kHighestErrno = 4095;

Result<void> wait_for_stop(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, __WALL) != pid) return Error::system("wait for the traced process");
  if (!WIFSTOPPED(status)) return Error::from_errno("the traced process died", ESRCH);
  return {};
}

}  // namespace

Result<TracedProcess> TracedProcess::stop(pid_t pid) {
  TracedProcess process(pid);
  if (ptrace(PTRACE_SEIZE, pid, nullptr, PTRACE_O_EXITKILL) != 0)
    return Error::system("ptrace seize");
  if (ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr) != 0)
    return Error::system("ptrace interrupt");
  ATOLL_TRY_VOID(wait_for_stop(pid));
  if (ptrace(PTRACE_GETREGS, pid, nullptr, &process.registers_) != 0)
    return Error::system("read registers");
  return process;
}

Result<uint64_t> TracedProcess::call(const Call& call) {
  user_regs_struct registers = registers_;
  registers.rip -= kInstructionBytes;
  registers.rax = static_cast<unsigned long>(call.number);
  registers.orig_rax = ~0ul;  // or the kernel would make the interrupted call again
  registers.rdi = call.first;
  registers.rsi = call.second;
  registers.rdx = call.third;
  registers.r10 = call.fourth;
  if (ptrace(PTRACE_SETREGS, pid_, nullptr, &registers) != 0)
    return Error::system("write registers");
  if (ptrace(PTRACE_SINGLESTEP, pid_, nullptr, nullptr) != 0) return Error::system("ptrace step");
  ATOLL_TRY_VOID(wait_for_stop(pid_));
  if (ptrace(PTRACE_GETREGS, pid_, nullptr, &registers) != 0)
    return Error::system("read registers");
  if (registers.rip != registers_.rip)
    return Error::from_errno("the traced process went elsewhere", EPROTO);
  if (registers.rax > ~kHighestErrno)
    return Error::from_errno("a call of the traced process", static_cast<int>(-registers.rax));
  return registers.rax;
}

Result<uint64_t> TracedProcess::signal_mask() const {
  uint64_t mask = 0;
  if (ptrace(static_cast<__ptrace_request>(PTRACE_GETSIGMASK), pid_, sizeof mask, &mask) != 0)
    return Error::system("read the signal mask");
  return mask;
}

Result<TracedProcess::RestartableSequence> TracedProcess::restartable_sequence() const {
  // Newer than some C libraries' headers.
  struct {
    uint64_t address;
    uint32_t bytes, signature, flags, padding;
  } configuration = {};
  constexpr auto kRequest = static_cast<__ptrace_request>(0x420f);
  if (ptrace(kRequest, pid_, sizeof configuration, &configuration) < 0)
    return Error::system("read the restartable sequence");
  return RestartableSequence{configuration.address, configuration.bytes, configuration.signature};
}

}  // namespace atl::linux
