// What a program in a sandbox may send to the proxy that it was told of. A request for a URL must
// become one that a server of that URL's host alone is sent: what looks at it next must see the
// same destination, and whatever comes in pieces must mean the same.
#include <cstdint>

#include "base/check.h"
#include "egress/proxy_request.h"

using namespace atl::egress;

namespace {

void check_head(const ProxyRequest& request) {
  const std::string& head = *request.head;
  ATOLL_CHECK(head.ends_with("\r\nConnection: close\r\n\r\n"));
  std::string_view line = std::string_view(head).substr(0, head.find("\r\n"));
  size_t space = line.find(' ');
  ATOLL_CHECK(space != line.npos && line[space + 1] == '/');
  // Either it is refused or it passes as one whole head for that destination.
  RequestStream stream(request.to, request.port);
  auto passed = stream.pass_piece(head);
  if (passed) ATOLL_CHECK(passed->is_head && passed->bytes == head.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto request = parse_proxy_request(bytes);
  if (!request || !*request) return 0;
  ATOLL_CHECK((*request)->bytes <= size && (*request)->port != 0);
  ATOLL_CHECK(bytes.substr(0, (*request)->bytes).ends_with("\r\n\r\n"));
  // Before its last byte it is not complete, and what follows it changes nothing.
  auto shorter = parse_proxy_request(bytes.substr(0, (*request)->bytes - 1));
  ATOLL_CHECK(shorter && !*shorter);
  auto alone = parse_proxy_request(bytes.substr(0, (*request)->bytes));
  ATOLL_CHECK(alone && *alone && (*alone)->to == (*request)->to);
  ATOLL_CHECK((*alone)->head == (*request)->head);
  if ((*request)->head) check_head(**request);
  return 0;
}
