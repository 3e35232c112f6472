#include "egress/dial.h"

#include <cstring>

#include "egress/upstream.h"

namespace atl::egress {

namespace asio = boost::asio;
using Socket = asio::ip::tcp::socket;

namespace {

Error dial_failed() { return Error(Code::kDenied, "dial").with_reason("dial_failed"); }

// Those on the way, in the order in which they are asked: the host's, then the policy's.
Result<std::vector<Upstream>> proxies_of(Gate& gate) {
  std::vector<Upstream> proxies;
  if (const Upstream* host = gate.surroundings().upstream) proxies.push_back(*host);
  ATOLL_TRY(auto own, gate.inspector().upstream());
  if (own) proxies.push_back(std::move(*own));
  return proxies;
}

}  // namespace

Task<Result<std::vector<Address>>> find_addresses(Gate& gate, Wanted wanted) {
  ATOLL_CO_TRY(auto proxies, proxies_of(gate));
  const Upstream* host = gate.surroundings().upstream;
  if (!proxies.empty()) wanted = Wanted{proxies[0].proxy, proxies[0].port};
  std::vector<Address> addresses;
  if (const auto* address = std::get_if<Address>(&wanted.to)) {
    addresses.push_back(*address);
    co_return addresses;
  }
  HostName name = std::get<HostName>(wanted.to);
  if (host == nullptr) {
    auto checked = co_await gate.resolve(name, wanted.port);
    co_return checked;
  }
  auto resolved = co_await gate.surroundings().resolver.resolve(name);
  if (!resolved) co_return std::move(resolved).error();
  co_return std::move(resolved->addresses);
}

Task<Result<void>> connect_out(Gate& gate, Socket& socket, Address address, Wanted wanted) {
  ATOLL_CO_TRY(auto proxies, proxies_of(gate));
  boost::system::error_code error;
  socket = Socket(gate.surroundings().executor);
  bool is_v4 = address.family() == Address::Family::kV4;
  socket.open(is_v4 ? asio::ip::tcp::v4() : asio::ip::tcp::v6(), error);
  if (error) co_return dial_failed();
  sockaddr_storage to;
  socklen_t bytes = address.to_sockaddr(proxies.empty() ? wanted.port : proxies[0].port, to);
  asio::ip::tcp::endpoint endpoint;
  endpoint.resize(bytes);
  std::memcpy(endpoint.data(), &to, bytes);
  auto [failed] = co_await socket.async_connect(endpoint, kToken);
  if (failed) co_return dial_failed();
  socket.set_option(asio::ip::tcp::no_delay(true), error);
  for (size_t i = 0; i < proxies.size(); ++i) {
    bool is_last = i + 1 == proxies.size();
    std::string authority = is_last ? authority_text(wanted.to, wanted.port)
                                    : authority_text(proxies[i + 1].proxy, proxies[i + 1].port);
    ATOLL_CO_TRY_VOID(co_await ask_upstream(socket, proxies[i], std::move(authority)));
  }
  co_return Result<void>();
}

}  // namespace atl::egress
