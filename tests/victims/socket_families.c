// Every family but AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK, with each type: none may open, and
// none may make the kernel look for a module.
// victim: id=ESC-29
#include <sys/socket.h>

#include "victim.h"

static bool is_allowed(int family) {
  return family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
}

int main(void) {
  for (int family = 0; family < 64; ++family) {
    for (int type = SOCK_STREAM; type <= SOCK_PACKET && !is_allowed(family); ++type) {
      int fd = socket(family, type, 0);
      if (fd < 0) continue;
      broke("family %d, type %d opened", family, type);
      close(fd);
    }
  }
  return conclude();
}
