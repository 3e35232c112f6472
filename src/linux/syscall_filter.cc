#include "linux/syscall_filter.h"

#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace atl::linux {

Result<void> load_syscall_filter(std::span<const sock_filter> program) {
  if (program.size() > BPF_MAXINSNS) return Error::from_errno("load system call filter", E2BIG);
  sock_fprog description = {static_cast<unsigned short>(program.size()),
                            const_cast<sock_filter*>(program.data())};
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &description) != 0)
    return Error::system("load system call filter");
  return {};
}

}  // namespace atl::linux
