// Opens the disks of the host where they would be.
// victim: id=ESC-15
#include "victim.h"

int main(void) {
  static const char* const kPaths[] = {"/dev/sda",   "/dev/vda",         "/dev/nvme0n1",
                                       "/dev/xvda",  "/dev/dm-0",        "/dev/sg0",
                                       "/dev/loop0", "/dev/loop-control"};
  for (size_t i = 0; i < sizeof kPaths / sizeof kPaths[0]; ++i) attempt_open(kPaths[i], O_RDONLY);
  return conclude();
}
