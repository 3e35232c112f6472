// Enters namespaces through /proc: its own again, those of process 1, those of a pidfd.
// victim: id=ESC-18
#include <sched.h>

#include "victim.h"

static int opened;
static long enter(void) { return setns(opened, 0); }

int main(void) {
  static const char* const kPaths[] = {"/proc/self/ns/net", "/proc/self/ns/uts",
                                       "/proc/self/ns/ipc", "/proc/1/ns/mnt", "/proc/1/ns/net"};
  for (size_t i = 0; i < sizeof kPaths / sizeof kPaths[0]; ++i) {
    opened = open(kPaths[i], O_RDONLY | O_CLOEXEC);
    if (opened < 0)
      note("%s: %s", kPaths[i], strerror(errno));
    else
      attempt_in_child(kPaths[i], enter);
  }
  return conclude();
}
