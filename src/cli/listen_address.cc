#include "cli/listen_address.h"

#include <sys/socket.h>

#include <arpa/inet.h>
#include <charconv>
#include <netinet/in.h>

#include "base/fd.h"

namespace atl::cli {
namespace {

bool is_ipv4(const std::string& host) {
  in_addr parsed;
  return inet_pton(AF_INET, host.c_str(), &parsed) == 1;
}

bool is_ipv6(const std::string& host) {
  in6_addr parsed;
  return inet_pton(AF_INET6, host.c_str(), &parsed) == 1;
}

Error malformed(std::string_view text) {
  return Error(Code::kInvalid, "address \"" + std::string(text) + "\" is not IP:PORT");
}

}  // namespace

Result<ListenAddress> ListenAddress::parse(std::string_view text) {
  size_t colon = text.rfind(':');
  if (colon == text.npos) return malformed(text);
  ListenAddress address;
  address.host = std::string(text.substr(0, colon));
  bool bracketed =
      address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']';
  if (bracketed) address.host = address.host.substr(1, address.host.size() - 2);
  if (bracketed ? !is_ipv6(address.host) : !is_ipv4(address.host)) return malformed(text);

  std::string_view digits = text.substr(colon + 1);
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
    return malformed(text);
  return address;
}

std::string ListenAddress::string() const {
  bool bracketed = host.find(':') != host.npos;
  return (bracketed ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool ListenAddress::is_loopback() const {
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

Result<void> ListenAddress::check_free() const {
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  bool is_v4 = inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1;
  if (!is_v4 && inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) != 1) return malformed(string());

  Fd probe(socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!probe) return Error::system("make socket");
  // As a server does, so that connections that are only waiting to be forgotten do not count.
  int on = 1;
  if (setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0)
    return Error::system("set SO_REUSEADDR");
  const auto* address = is_v4 ? reinterpret_cast<sockaddr*>(&v4) : reinterpret_cast<sockaddr*>(&v6);
  if (bind(probe.get(), address, is_v4 ? sizeof v4 : sizeof v6) == 0) return {};
  if (errno != EADDRINUSE) return Error::system("bind " + string());
  return Error(Code::kConflict, string() + " is taken by another program\n  remedy: find it with " +
                                    "ss -ltnp, or choose another --listen");
}

ListenAddress ListenAddress::reachable() const {
  if (host == "0.0.0.0") return {"127.0.0.1", port};
  if (host == "::") return {"::1", port};
  return *this;
}

}  // namespace atl::cli
