// The first message of a program that was told to use a proxy: CONNECT name:port. What follows it
// is looked at as on any other connection to that destination; nothing else is done for it here.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "egress/policy.h"

namespace atl::egress {

inline constexpr size_t kMaxProxyHeadBytes = 16 * 1024;

struct ProxyRequest {
  Destination to;
  uint16_t port = 0;
  size_t bytes = 0;  // of the head; what follows is for the destination
};

// Nothing: more is needed. kDenied with reason bad_proxy_request; connect_only for another method.
Result<std::optional<ProxyRequest>> parse_proxy_request(std::string_view bytes);

}  // namespace atl::egress
