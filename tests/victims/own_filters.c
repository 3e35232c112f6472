// Loads filters for calls and for sockets. Their code is charged to nobody, and there is one room
// for it on the host, which every start of a program needs.
// victim: id=RES-14
// not_behind=gvisor:its_filters_are_the_sentry's_own
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "victim.h"

static struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, 0x7fff0000);
static struct sock_fprog program = {.len = 1, .filter = &allow};

int main(void) {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return not_tried("socket: %s", strerror(errno));
  if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0)
    broke("a socket has a filter");
  note("SO_ATTACH_FILTER: %s", strerror(errno));
  if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program) == 0)
    broke("a group of sockets has a filter");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) unjudged("no_new_privs: %s", strerror(errno));
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0) broke("a filter by prctl");
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0) broke("a filter of calls");
  note("seccomp: %s", strerror(errno));
  return conclude();
}
