#include "egress/proxy_request.h"

#include <algorithm>
#include <array>

namespace atl::egress {
namespace {

constexpr std::string_view kConnect = "CONNECT";
constexpr std::string_view kScheme = "http://";
constexpr uint16_t kSchemePort = 80;
constexpr size_t kMaxMethodBytes = 16;
// Between the program and its proxy, and not for the server.
constexpr std::array<std::string_view, 5> kHopFields = {
    "connection", "keep-alive", "proxy-connection", "proxy-authorization", "proxy-authenticate"};

Error refused(const char* why) {
  return Error(Code::kDenied, why).with_reason("bad_proxy_request");
}

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

char to_lower(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

struct FirstLine {
  std::string_view method, target, version;
};

Result<FirstLine> split_line(std::string_view line) {
  size_t first = line.find(' '), second = line.find(' ', first + 1);
  if (first == line.npos || second == line.npos) return refused("the first line is malformed");
  FirstLine parts{line.substr(0, first), line.substr(first + 1, second - first - 1),
                  line.substr(second + 1)};
  if (parts.version != "HTTP/1.1" && parts.version != "HTTP/1.0")
    return refused("the first line is malformed");
  return parts;
}

// The fields of a head without those of the hop.
Result<std::string> fields_onward(std::string_view fields) {
  std::string kept;
  while (!fields.empty()) {
    size_t end = fields.find("\r\n");
    std::string_view line = fields.substr(0, end);
    fields.remove_prefix(end + 2);
    if (line.empty()) break;
    size_t colon = line.find(':');
    bool is_folded = line[0] == ' ' || line[0] == '\t';
    if (is_folded || colon == line.npos) return refused("a field is malformed");
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(), to_lower);
    if (std::find(kHopFields.begin(), kHopFields.end(), name) != kHopFields.end()) continue;
    kept.append(line).append("\r\n");
  }
  return kept + "Connection: close\r\n\r\n";
}

Result<ProxyRequest> parse_url_request(const FirstLine& line, std::string_view fields) {
  if (!line.target.starts_with(kScheme)) return refused("what is asked for is no URL of http");
  std::string_view rest = line.target.substr(kScheme.size());
  size_t end = rest.find_first_of("/?#");
  auto authority = parse_authority(rest.substr(0, end));
  if (!authority) return refused("the URL names no host");
  std::string path(end == rest.npos ? std::string_view() : rest.substr(end));
  if (!path.starts_with('/')) path.insert(0, "/");
  if (path.find('#') != path.npos) return refused("the URL has a fragment");
  ATOLL_TRY(std::string onward, fields_onward(fields));
  ProxyRequest request{.to = authority->to, .port = authority->port.value_or(kSchemePort)};
  request.head =
      std::string(line.method) + " " + path + " " + std::string(line.version) + "\r\n" + onward;
  return request;
}

}  // namespace

Result<std::optional<ProxyRequest>> parse_proxy_request(std::string_view bytes) {
  std::string_view method = bytes.substr(0, bytes.find(' '));
  bool may_be_method = method.size() <= kMaxMethodBytes &&
                       std::all_of(method.begin(), method.end(), is_upper) &&
                       !bytes.starts_with(' ');
  if (!may_be_method) return refused("it does not begin with a method");
  http::HeaderScanner scanner;
  auto end = scanner.scan(bytes.substr(0, kMaxProxyHeadBytes));
  if (!end) return refused("the head is malformed");
  if (*end == 0 && bytes.size() >= kMaxProxyHeadBytes) return refused("the head is too long");
  if (*end == 0) return std::optional<ProxyRequest>();
  size_t line_end = bytes.find("\r\n");
  ATOLL_TRY(FirstLine line, split_line(bytes.substr(0, line_end)));
  if (line.method != kConnect) {
    std::string_view fields = bytes.substr(line_end + 2, *end - line_end - 2);
    ATOLL_TRY(ProxyRequest request, parse_url_request(line, fields));
    request.bytes = *end;
    return std::optional(std::move(request));
  }
  auto authority = parse_authority(line.target);
  if (!authority || !authority->port) return refused("the destination is not name:port");
  return std::optional(ProxyRequest{.to = authority->to, .port = *authority->port, .bytes = *end});
}

}  // namespace atl::egress
