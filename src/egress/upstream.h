// Upstream: a proxy that this host must use, or that a policy names. When the host has one, egress
// dials nothing else: it asks the proxy for each destination by CONNECT, and a policy's proxy is
// such a destination. The proxy then resolves names, so the addresses that they have are not
// checked here; everything else is decided as without one.
//
//   proxy = "proxy.example.com:3128"                # or "environment": as https_proxy says, or
//                                                   # http_proxy, in what `atoll up` was given
//   credentials = "/etc/atoll/proxy.credentials"    # a file with name:password, not world-readable
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/ip/tcp.hpp>

#include "base/result.h"
#include "egress/policy.h"
#include "egress/task.h"

namespace atl::egress {

struct Upstream {
  Destination proxy;
  uint16_t port = 0;
  std::string authorization = {};  // the value of Proxy-Authorization; empty: none
};

// From a file that belongs to root and that nobody else can write; nothing if there is none.
Result<std::optional<Upstream>> read_upstream(const std::string& path);

// From the value of http_proxy, "http://[name:password@]host:port"; nothing for an empty one.
Result<std::optional<Upstream>> parse_proxy_url(std::string_view url);

// The value of Proxy-Authorization for name:password.
std::string basic_authorization(std::string_view credentials);

// "name:port" or "[v6]:port".
std::string authority_text(const Destination& to, uint16_t port);

// On a connection to the proxy: asks for the destination. kDenied with reason upstream_refused or
// upstream_failed.
Task<Result<void>> ask_upstream(boost::asio::ip::tcp::socket& socket, const Upstream& upstream,
                                std::string authority);

}  // namespace atl::egress
