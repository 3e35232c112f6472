// Raises capabilities in the inheritable and ambient sets, to carry them through an exec.
// victim: id=ESC-16
// not_behind=gvisor:its_kernel_knows_no_ambient_set
#include <linux/capability.h>
#include <sys/prctl.h>

#include "victim.h"

int main(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct all[2] = {{~0u, ~0u, ~0u}, {0x1ff, 0x1ff, 0x1ff}};
  attempt("capset of everything", syscall(SYS_capset, &header, all));
  attempt("ambient SYS_ADMIN", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0));
  return conclude();
}
