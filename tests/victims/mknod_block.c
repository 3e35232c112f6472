// Makes the device node of a disk.
// victim: id=ESC-15
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "victim.h"

int main(void) {
  static const unsigned kMajors[] = {7, 8, 253, 254, 259};
  for (size_t i = 0; i < sizeof kMajors / sizeof kMajors[0]; ++i) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/disk%u", kMajors[i]);
    attempt(path, mknod(path, S_IFBLK | 0600, makedev(kMajors[i], 0)));
    unlink(path);
  }
  return conclude();
}
