// The first message of a program that was told to use a proxy: CONNECT name:port, or a request for
// a whole URL (GET http://name/path). What follows it is looked at as on any other connection to
// that destination; nothing else is done for it here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "egress/request_stream.h"

namespace atl::egress {

inline constexpr size_t kMaxProxyHeadBytes = kMaxRequestHeadBytes;

struct ProxyRequest {
  Destination to;
  uint16_t port = 0;
  size_t bytes = 0;  // of the head; what follows is for the destination
  // Of a request for a URL: what the server is sent in its place. The request is the only one on
  // its connection, because the next could be for another server. Nothing: it was CONNECT.
  std::optional<std::string> head = {};
};

// Nothing: more is needed. kDenied with reason bad_proxy_request.
Result<std::optional<ProxyRequest>> parse_proxy_request(std::string_view bytes);

}  // namespace atl::egress
