// Walks /proc/sys and opens every file for writing: none may open.
// victim: id=ESC-38 timeout_ms=60000
// not_behind=gvisor:its_settings_are_the_sentry's_own
#include <ftw.h>
#include <sys/stat.h>

#include "victim.h"

static int look(const char* path, const struct stat* status, int kind, struct FTW* where) {
  (void)status;
  (void)where;
  if (kind != FTW_F) return 0;
  int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return 0;
  broke("%s opens for writing", path);
  close(fd);
  return 0;
}

int main(void) {
  if (nftw("/proc/sys", look, 16, FTW_PHYS) != 0)
    return not_tried("/proc/sys: %s", strerror(errno));
  nftw("/proc/irq", look, 16, FTW_PHYS);
  nftw("/proc/fs", look, 16, FTW_PHYS);
  nftw("/proc/bus", look, 16, FTW_PHYS);
  return conclude();
}
