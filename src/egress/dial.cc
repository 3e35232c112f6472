#include "egress/dial.h"

#include <cstring>

#include "egress/upstream.h"

namespace atl::egress {

namespace asio = boost::asio;
using Socket = asio::ip::tcp::socket;

namespace {

Error dial_failed() { return Error(Code::kDenied, "dial").with_reason("dial_failed"); }

}  // namespace

Task<Result<std::vector<Address>>> find_addresses(Gate& gate, Wanted wanted) {
  const Upstream* upstream = gate.surroundings().upstream;
  Destination to = upstream ? upstream->proxy : wanted.to;
  std::vector<Address> addresses;
  if (const auto* address = std::get_if<Address>(&to)) {
    addresses.push_back(*address);
    co_return addresses;
  }
  HostName name = std::get<HostName>(to);
  if (!upstream) {
    auto checked = co_await gate.resolve(name, wanted.port);
    co_return checked;
  }
  auto resolved = co_await gate.surroundings().resolver.resolve(name);
  if (!resolved) co_return std::move(resolved).error();
  co_return std::move(resolved->addresses);
}

Task<Result<void>> connect_out(Gate& gate, Socket& socket, Address address, Wanted wanted) {
  const Upstream* upstream = gate.surroundings().upstream;
  boost::system::error_code error;
  socket = Socket(gate.surroundings().executor);
  bool is_v4 = address.family() == Address::Family::kV4;
  socket.open(is_v4 ? asio::ip::tcp::v4() : asio::ip::tcp::v6(), error);
  if (error) co_return dial_failed();
  sockaddr_storage to;
  socklen_t bytes = address.to_sockaddr(upstream ? upstream->port : wanted.port, to);
  asio::ip::tcp::endpoint endpoint;
  endpoint.resize(bytes);
  std::memcpy(endpoint.data(), &to, bytes);
  auto [failed] = co_await socket.async_connect(endpoint, kToken);
  if (failed) co_return dial_failed();
  socket.set_option(asio::ip::tcp::no_delay(true), error);
  if (!upstream) co_return Result<void>();
  std::string authority = authority_text(wanted.to, wanted.port);
  auto asked = co_await ask_upstream(socket, *upstream, std::move(authority));
  co_return asked;
}

}  // namespace atl::egress
