#include "http/dial.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <netinet/tcp.h>

namespace atl::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

Result<Fd> dial_address(const addrinfo& address, SteadyTime deadline) {
  Fd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Error::system("socket");
  int on = 1;
  if (setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
    return Error::system("set TCP_NODELAY");
  }
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  int why = errno;
  if (why == EINPROGRESS) {
    ATOLL_TRY_VOID(wait_for_socket(fd.get(), POLLOUT, deadline));
    socklen_t size = sizeof why;
    if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &why, &size) != 0) why = errno;
  }
  if (why == 0) return fd;
  return Error(Code::kUnavailable, strerror(why), why);
}

}  // namespace

std::string host_field(const std::string& host, unsigned short port) {
  bool is_ipv6 = host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Fd> dial(const std::string& host, unsigned short port, SteadyTime deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  std::string what = "connect to " + host_field(host, port);
  int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0) return Error(Code::kUnavailable, what + ": " + gai_strerror(failed));
  std::unique_ptr<addrinfo, FreeAddresses> addresses(found);
  Error last(Code::kUnavailable, "no address");
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    auto connected = dial_address(*address, deadline);
    if (connected.ok()) return connected;
    last = std::move(connected).error();
  }
  return std::move(last).with_context(what);
}

Result<void> wait_for_socket(int fd, short events, SteadyTime deadline) {
  for (;;) {
    auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    if (left <= milliseconds(0)) return Error(Code::kTimeout, "no answer in time");
    pollfd state{.fd = fd, .events = events, .revents = 0};
    int timeout = static_cast<int>(std::min<int64_t>(left.count(), 1'000'000'000));
    int ready = poll(&state, 1, timeout);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return Error::system("poll");
  }
}

}  // namespace atl::http
