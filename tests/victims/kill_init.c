// Kills and stops process 1, which would end the whole sandbox.
// victim: id=ESC-20 sandbox=fresh
// instead=gvisor:ok|sandbox_gone:root_may_end_its_own_sandbox
#include <signal.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would signal process 1 of the host");
  // Root inside may signal it, but the kernel drops what process 1 does not handle.
  int sent = kill(1, SIGKILL);
  note("SIGKILL: %s", sent == 0 ? "sent" : strerror(errno));
  sent = kill(1, SIGSTOP);
  note("SIGSTOP: %s", sent == 0 ? "sent" : strerror(errno));
  usleep(100000);
  char state[4096];
  if (read_text("/proc/1/stat", state, sizeof state) <= 0) return not_tried("/proc/1/stat");
  const char* after = strrchr(state, ')');
  if (after == NULL || after[2] == 'T' || after[2] == 'Z') broke("process 1 stopped: %s", state);
  return conclude();
}
