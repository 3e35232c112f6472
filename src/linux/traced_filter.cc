#include "linux/traced_filter.h"

#include <linux/filter.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <vector>

namespace atl::linux {
namespace {

// Traces from construction to destruction; the process goes on when we die too.
class Tracing {
 public:
  explicit Tracing(pid_t pid) : pid_(pid) {}
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;
  ~Tracing() {
    if (stopped_) ptrace(PTRACE_DETACH, pid_, nullptr, nullptr);
  }

  Result<void> stop() {
    if (ptrace(PTRACE_SEIZE, pid_, nullptr, nullptr) != 0) return Error::system("ptrace seize");
    if (ptrace(PTRACE_INTERRUPT, pid_, nullptr, nullptr) != 0)
      return Error::system("ptrace interrupt");
    int status = 0;
    if (waitpid(pid_, &status, __WALL) != pid_) return Error::system("wait for the traced process");
    if (!WIFSTOPPED(status)) return Error::from_errno("the traced process died", ESRCH);
    stopped_ = true;
    return {};
  }

  // How many instructions filter `index` has; index 0 is the one that was loaded last.
  Result<size_t> filter(unsigned long index, sock_filter* instructions) {
    long count = ptrace(PTRACE_SECCOMP_GET_FILTER, pid_, index, instructions);
    if (count < 0) return Error::system("read the filter");
    return static_cast<size_t>(count);
  }

 private:
  pid_t pid_;
  bool stopped_ = false;
};

}  // namespace

Result<std::string> read_filter_of(pid_t pid) {
  Tracing tracing(pid);
  ATOLL_TRY_VOID(tracing.stop());
  ATOLL_TRY(size_t count, tracing.filter(0, nullptr));
  std::vector<sock_filter> instructions(count);
  ATOLL_TRY_VOID(tracing.filter(0, instructions.data()));
  auto second = tracing.filter(1, nullptr);
  if (second.ok() || second.error().system_errno() != ENOENT)
    return Error::from_errno("the process has more than one filter", EEXIST);
  return std::string(reinterpret_cast<const char*>(instructions.data()),
                     count * sizeof(sock_filter));
}

}  // namespace atl::linux
