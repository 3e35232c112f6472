// Forks daemons that leave their parent and their group: the limit must count them too.
// victim: id=RES-01 sandbox=fresh limits=pids:32 verdict=pids_limit
// instead=gvisor:pids_limit|stopped:refused_faster_than_the_agent_looks
#include "victim.h"

static int spawn(void) {
  pid_t child = fork();
  if (child < 0) return errno;
  if (child > 0) return wait_for(child);
  setsid();
  pid_t daemon = fork();
  if (daemon < 0) _exit(errno);
  if (daemon > 0) _exit(0);
  alarm(20);
  pause();
  _exit(0);
}

int main(void) {
  if (!may_harm()) return not_tried("a fork bomb is not for a host");
  for (int made = 0; made < 200; ++made) {
    int number = spawn();
    if (number == 0) continue;
    note("stopped after %d: %s", made, strerror(number));
    return number == EAGAIN ? kStoppedByLimit : kUnjudged;
  }
  broke("200 daemons");
  return conclude();
}
