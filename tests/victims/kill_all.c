// Kills every process it may: nobody outside of its sandbox may notice.
// victim: id=ESC-20 sandbox=fresh
// instead=gvisor:ok|sandbox_gone:root_may_end_its_own_sandbox
#include <signal.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would kill every process of the host");
  int sent = kill(-1, SIGKILL);
  note("kill everything: %s", sent == 0 ? "sent" : strerror(errno));
  char state[4096];
  if (read_text("/proc/1/stat", state, sizeof state) <= 0) broke("process 1 is gone");
  return conclude();
}
