#include "cli/watchdog.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

#include "base/log.h"

namespace atl::cli {
namespace {

constexpr std::chrono::seconds kTellPeriod{1};

}  // namespace

Watchdog::Watchdog(std::string address) : address_(std::move(address)) {
  if (address_.empty()) return;
  bool usable = address_.size() < sizeof(sockaddr_un::sun_path) &&
                (address_.front() == '/' || address_.front() == '@');
  if (usable) socket_ = Fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) log_warning("the service manager cannot be told anything");
}

void Watchdog::tell_alive(SteadyTime now) {
  if (now < next_) return;
  next_ = now + kTellPeriod;
  tell("WATCHDOG=1");
}

void Watchdog::tell(std::string_view message) {
  if (!socket_) return;
  sockaddr_un to = {};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  // An abstract name begins with a zero, and ends where it ends.
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  if (sendto(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&to), length) < 0)
    log_warning("the service manager was not told", {Error::system("send")});
}

}  // namespace atl::cli
