// The files that process 1 has mapped, through /proc.
// victim: id=ESC-13
#include <dirent.h>

#include "victim.h"

int main(void) {
  DIR* directory = opendir("/proc/1/map_files");
  if (directory == NULL) {
    note("/proc/1/map_files: %s", strerror(errno));
    return conclude();
  }
  for (struct dirent* entry = readdir(directory); entry != NULL; entry = readdir(directory))
    if (entry->d_name[0] != '.') broke("mapped %s", entry->d_name);
  closedir(directory);
  return conclude();
}
