// UpstreamUse: a proxy that a policy sends a sandbox's connections through, and the secret of the
// tenant that it is shown: name:password, bound to the proxy's host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "egress/address.h"
#include "egress/host_name.h"

namespace atl::egress {

struct UpstreamUse {
  std::variant<HostName, Address> proxy;
  uint16_t port = 0;
  std::string credentials = {};  // the name of a secret; empty: none
  bool operator==(const UpstreamUse&) const = default;
};

// `proxy` is name:port. The error says what is wrong.
Result<UpstreamUse> make_upstream_use(std::string_view proxy, std::string credentials);

// "upstream" of a policy: {"proxy": "proxy.example.com:3128", "credentials": "PROXY_LOGIN"}.
Result<std::optional<UpstreamUse>> read_upstream_use(const boost::json::object& policy);
boost::json::object upstream_use_json(const UpstreamUse& use);

}  // namespace atl::egress
