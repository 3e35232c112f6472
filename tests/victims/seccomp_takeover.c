// Adds a filter of its own that allows everything: what was forbidden must stay so.
// victim: id=ESC-31
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>

#include "victim.h"

static long unshare_after(void) {
  struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {.len = 1, .filter = &allow};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
  return unshare(CLONE_NEWUSER);
}

int main(void) {
  attempt_in_child("unshare behind an own filter", unshare_after);
  return conclude();
}
