// Makes the device nodes of memory, of KVM and of the whiteout that overlays use.
// victim: id=ESC-15
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "victim.h"

static void make(const char* path, unsigned device_major, unsigned device_minor) {
  attempt(path, mknod(path, S_IFCHR | 0600, makedev(device_major, device_minor)));
  unlink(path);
}

int main(void) {
  make("/tmp/mem", 1, 1);
  make("/tmp/kvm", 10, 232);
  make("/tmp/tun", 10, 200);
  make("/tmp/kmsg", 1, 11);
  return conclude();
}
