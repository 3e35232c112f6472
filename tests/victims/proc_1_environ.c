// Reads the environment and the descriptors of process 1.
// victim: id=ESC-19
#include <dirent.h>

#include "victim.h"

int main(void) {
  attempt_open("/proc/1/environ", O_RDONLY);
  DIR* directory = opendir("/proc/1/fd");
  if (directory == NULL) {
    note("/proc/1/fd: %s", strerror(errno));
    return conclude();
  }
  for (struct dirent* entry = readdir(directory); entry != NULL; entry = readdir(directory))
    if (entry->d_name[0] != '.') broke("/proc/1/fd shows %s", entry->d_name);
  closedir(directory);
  return conclude();
}
