// Reads firmware tables, ACPI and SCSI devices of the host.
// victim: id=ESC-06
#include <dirent.h>

#include "victim.h"

static void list(const char* path) {
  DIR* directory = opendir(path);
  if (directory == NULL) {
    note("%s: %s", path, strerror(errno));
    return;
  }
  for (struct dirent* entry = readdir(directory); entry != NULL; entry = readdir(directory))
    if (entry->d_name[0] != '.') broke("%s holds %s", path, entry->d_name);
  closedir(directory);
}

int main(void) {
  list("/sys/firmware");
  list("/proc/acpi");
  list("/proc/scsi");
  list("/sys/devices/virtual/powercap");
  return conclude();
}
