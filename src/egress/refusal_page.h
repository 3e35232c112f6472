// What a program is told over HTTP when a request of it does not go on.
#pragma once

#include <string>

namespace atl::egress {

// "429 Too Many Requests" where it may be tried again.
inline std::string refusal_status(const std::string& reason) {
  return reason == "budget_requests" ? "429 Too Many Requests" : "403 Forbidden";
}

// The status line's part: "403 Forbidden", "502 Bad Gateway".
inline std::string refusal_page(const std::string& status, const std::string& reason) {
  std::string body = "{\"error\":{\"code\":\"egress_denied\",\"message\":\"" + reason + "\"}}\n";
  return "HTTP/1.1 " + status +
         "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace atl::egress
