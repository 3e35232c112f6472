// The way from a destination that was allowed to a connected socket: directly, or through the proxy
// that this host must use, or that the policy names, or the one and then the other.
#pragma once

#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "egress/gate.h"
#include "egress/task.h"

namespace atl::egress {

struct Wanted {
  Destination to;
  uint16_t port;
};

// The addresses to dial: of the destination or of the policy's proxy, each checked; or of the
// host's proxy.
Task<Result<std::vector<Address>>> find_addresses(Gate& gate, Wanted wanted);

// kDenied with reason dial_failed, above_ceiling, upstream_failed or upstream_refused. Whoever
// closes the socket ends it.
Task<Result<void>> connect_out(Gate& gate, boost::asio::ip::tcp::socket& socket, Address address,
                               Wanted wanted);

}  // namespace atl::egress
