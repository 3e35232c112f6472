#include "egress/proxy_request.h"

#include "egress/request_stream.h"

namespace atl::egress {
namespace {

constexpr std::string_view kMethod = "CONNECT ";

Error refused(std::string_view reason, const char* why) {
  return Error(Code::kDenied, why).with_reason(reason);
}

}  // namespace

Result<std::optional<ProxyRequest>> parse_proxy_request(std::string_view bytes) {
  std::string_view begin = bytes.substr(0, kMethod.size());
  if (!kMethod.starts_with(begin)) return refused("connect_only", "the method is not CONNECT");
  http::HeaderScanner scanner;
  auto end = scanner.scan(bytes.substr(0, kMaxProxyHeadBytes));
  if (!end) return refused("bad_proxy_request", "the head is malformed");
  if (*end == 0 && bytes.size() >= kMaxProxyHeadBytes)
    return refused("bad_proxy_request", "the head is too long");
  if (*end == 0) return std::optional<ProxyRequest>();
  std::string_view line = bytes.substr(0, bytes.find("\r\n"));
  std::string_view rest = line.substr(std::min(kMethod.size(), line.size()));
  size_t space = rest.find(' ');
  bool is_http = space != rest.npos &&
                 (rest.substr(space + 1) == "HTTP/1.1" || rest.substr(space + 1) == "HTTP/1.0");
  if (!is_http) return refused("bad_proxy_request", "the first line is malformed");
  auto authority = parse_authority(rest.substr(0, space));
  if (!authority || !authority->port)
    return refused("bad_proxy_request", "the destination is not name:port");
  return std::optional(ProxyRequest{.to = authority->to, .port = *authority->port, .bytes = *end});
}

}  // namespace atl::egress
