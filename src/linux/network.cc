#include "linux/network.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <net/if.h>

#include "base/fd.h"

namespace atl::linux {

Result<void> raise_interface(const char* name) {
  // Any socket does: interface ioctls belong to the network namespace, not to the family.
  Fd socket_fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket_fd) return Error::system("socket");
  ifreq request = {};
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  if (ioctl(socket_fd.get(), SIOCGIFFLAGS, &request) != 0)
    return Error::system(std::string("read the flags of ") + name);
  request.ifr_flags |= IFF_UP;
  if (ioctl(socket_fd.get(), SIOCSIFFLAGS, &request) != 0)
    return Error::system(std::string("raise ") + name);
  return {};
}

}  // namespace atl::linux
