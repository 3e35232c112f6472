// Opens the devices by which a program gets another kernel's surface.
// victim: id=ESC-15
// not_behind=gvisor:its_/dev/fuse_is_the_sentry's_own
#include "victim.h"

int main(void) {
  static const char* const kPaths[] = {
      "/dev/kvm",       "/dev/fuse",     "/dev/net/tun", "/dev/vhost-net", "/dev/vhost-vsock",
      "/dev/uinput",    "/dev/snapshot", "/dev/vsock",   "/dev/hwrng",     "/dev/console",
      "/dev/tty0",      "/dev/tty1",     "/dev/vcs",     "/dev/autofs",    "/dev/btrfs-control",
      "/dev/cpu/0/msr", "/dev/nvram",    "/dev/input",   "/dev/dri/card0",
  };
  for (size_t i = 0; i < sizeof kPaths / sizeof kPaths[0]; ++i) attempt_open(kPaths[i], O_RDWR);
  return conclude();
}
