// Looks for anything in /sys, and makes a file there.
// victim: id=ESC-38
#include <dirent.h>

#include "victim.h"

int main(void) {
  DIR* directory = opendir("/sys");
  if (directory == NULL) {
    note("/sys: %s", strerror(errno));
    return conclude();
  }
  for (struct dirent* entry = readdir(directory); entry != NULL; entry = readdir(directory))
    if (entry->d_name[0] != '.') broke("/sys holds %s", entry->d_name);
  closedir(directory);
  int fd = open("/sys/victim", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) broke("a file was made in /sys");
  return conclude();
}
