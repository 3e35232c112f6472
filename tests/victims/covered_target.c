// Replaces a mount target while the sandbox lives: /proc, /dev and /run must not move.
// victim: id=FS-09 user=root
#include <sys/stat.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would move directories of the host");
  static const char* const kTargets[] = {"/proc", "/dev", "/run", "/dev/shm", "/dev/pts"};
  for (size_t i = 0; i < sizeof kTargets / sizeof kTargets[0]; ++i) {
    if (rename(kTargets[i], "/moved") == 0) broke("%s was moved", kTargets[i]);
    if (rmdir(kTargets[i]) == 0) broke("%s was removed", kTargets[i]);
  }
  return conclude();
}
