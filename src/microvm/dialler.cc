#include "microvm/dialler.h"

#include <sys/socket.h>

#include <arpa/inet.h>
#include <cstring>
#include <netinet/in.h>

namespace atl::microvm {
namespace {

// Or the kernel would keep megabytes for each connection that stands still.
constexpr int kSocketBytes = 64 * 1024;

}  // namespace

Result<Fd> dial_inside(const Destination& destination) {
  int type = destination.transport == Transport::kStream ? SOCK_STREAM : SOCK_DGRAM;
  Fd made(socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) return Error::system("socket");
  for (int option : {SO_SNDBUF, SO_RCVBUF})
    setsockopt(made.get(), SOL_SOCKET, option, &kSocketBytes, sizeof kSocketBytes);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(destination.port);
  std::memcpy(&to.sin_addr, destination.address.data(), destination.address.size());
  if (connect(made.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0 && errno != EINPROGRESS)
    return Error::system("connect");
  return made;
}

}  // namespace atl::microvm
