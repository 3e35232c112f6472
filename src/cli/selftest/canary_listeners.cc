#include "cli/selftest/canary_listeners.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <netinet/in.h>

namespace atl::cli::selftest {
namespace {

constexpr int kBacklog = 16;

Result<Fd> listen_on(int family, const sockaddr* address, socklen_t length) {
  Fd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || bind(fd.get(), address, length) != 0 || listen(fd.get(), kBacklog) != 0)
    return Error::system("open a canary listener");
  return fd;
}

Result<Fd> listen_unix(std::string_view name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof address.sun_path)
    return Error(Code::kInvalid, "the name of a canary socket is too long");
  memcpy(address.sun_path, name.data(), name.size());
  auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return listen_on(AF_UNIX, reinterpret_cast<sockaddr*>(&address), length);
}

bool take(const Fd& listener) {
  bool hit = false;
  while (true) {
    Fd connection(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) return hit;
    hit = true;
  }
}

}  // namespace

Result<CanaryListeners> CanaryListeners::open(const std::string& directory) {
  CanaryListeners canary;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ATOLL_TRY(canary.tcp_, listen_on(AF_INET, generic, sizeof address));
  socklen_t length = sizeof address;
  if (getsockname(canary.tcp_.get(), generic, &length) != 0) return Error::system("getsockname");
  canary.port_ = ntohs(address.sin_port);
  canary.abstract_name_ = "atoll-canary-" + std::to_string(getpid());
  ATOLL_TRY(canary.abstract_, listen_unix(std::string(1, '\0') + canary.abstract_name_));
  canary.path_ = directory + "/socket";
  ATOLL_TRY(canary.file_, listen_unix(canary.path_));
  if (chmod(canary.path_.c_str(), 0777) != 0) return Error::system("chmod " + canary.path_);
  return canary;
}

std::vector<std::string> CanaryListeners::take_hits() const {
  std::vector<std::string> hits;
  if (take(tcp_)) hits.push_back("a port of the host's loopback interface was reached");
  if (take(abstract_)) hits.push_back("an abstract socket of the host was reached");
  if (take(file_)) hits.push_back("a socket file of the host was reached");
  return hits;
}

}  // namespace atl::cli::selftest
