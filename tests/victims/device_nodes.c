// The devices of /dev must be the real ones, whatever the image holds, and stay in place.
// victim: id=ESC-08
// not_behind=gvisor:its_/dev_is_a_file_system_of_the_sandbox's_own
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "victim.h"

static void check(const char* path, unsigned wanted_major, unsigned wanted_minor) {
  struct stat status;
  if (lstat(path, &status) != 0)
    unjudged("%s: %s", path, strerror(errno));
  else if (!S_ISCHR(status.st_mode) || major(status.st_rdev) != wanted_major ||
           minor(status.st_rdev) != wanted_minor)
    broke("%s is not character device %u:%u", path, wanted_major, wanted_minor);
}

static void must_stay(const char* what, int result) {
  if (result == 0) broke("%s succeeded", what);
  note("%s: %s", what, strerror(errno));
}

int main(void) {
  if (!may_harm()) return not_tried("would rename device nodes of the host");
  check("/dev/null", 1, 3);
  check("/dev/zero", 1, 5);
  check("/dev/full", 1, 7);
  check("/dev/random", 1, 8);
  check("/dev/urandom", 1, 9);
  check("/dev/tty", 5, 0);
  must_stay("rename /dev/full", rename("/dev/full", "/dev/full.old"));
  must_stay("symlink in /dev", symlink("/proc/self/mem", "/dev/victim"));
  return conclude();
}
