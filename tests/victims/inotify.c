// Takes every inotify instance it can get and keeps them: the host and others must get theirs.
// victim: id=RES-14 sandbox=fresh
#include <sys/inotify.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would take every inotify instance of the host's root");
  int taken = 0;
  while (taken < 3000 && inotify_init1(IN_CLOEXEC) >= 0) ++taken;
  note("%d instances, then %s", taken, strerror(errno));
  // A child keeps them until the sandbox goes, so that the runner can look at the host meanwhile.
  if (fork() == 0) {
    close(1);
    close(2);
    sleep(60);
    _exit(0);
  }
  return conclude();
}
