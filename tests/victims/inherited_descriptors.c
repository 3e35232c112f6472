// Counts its descriptors at the first instruction: only the three standard ones.
// victim: id=ESC-10
#include <dirent.h>

#include "victim.h"

int main(void) {
  DIR* directory = opendir("/proc/self/fd");
  if (directory == NULL) return not_tried("/proc/self/fd: %s", strerror(errno));
  for (struct dirent* entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
    int fd = atoi(entry->d_name);
    if (entry->d_name[0] == '.' || fd == dirfd(directory)) continue;
    char path[64], target[256] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (readlink(path, target, sizeof target - 1) < 0) continue;
    bool expected = strncmp(target, "pipe:", 5) == 0 || strcmp(target, "/dev/null") == 0;
    if (fd > 2 || !expected) broke("descriptor %d is %s", fd, target);
  }
  return conclude();
}
