// Queues signals until it may not: they are the kernel's memory, and limited.
// victim: id=RES-02
#include <signal.h>

#include "victim.h"

int main(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  union sigval nothing = {0};
  int queued = 0;
  while (queued < 200000 && sigqueue(getpid(), SIGRTMIN, nothing) == 0) ++queued;
  note("%d signals, then %s", queued, strerror(errno));
  if (queued >= 200000) broke("200000 signals are queued");
  return conclude();
}
