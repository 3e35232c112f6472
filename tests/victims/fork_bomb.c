// Forks until it may not: the limit of processes must stop it and be its verdict.
// victim: id=RES-01 sandbox=fresh limits=pids:32 verdict=pids_limit
// instead=gvisor:pids_limit|stopped:refused_faster_than_the_agent_looks

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("a fork bomb is not for a host");
  int made = 0;
  for (; made < 200; ++made) {
    pid_t child = fork();
    if (child < 0) break;
    if (child == 0) {
      alarm(20);
      pause();
      _exit(0);
    }
  }
  int number = errno;
  if (made == 200) {
    broke("200 processes");
    return conclude();
  }
  note("stopped after %d: %s", made, strerror(number));
  return number == EAGAIN ? kStoppedByLimit : kUnjudged;
}
