#include "egress/spoken_protocol.h"

#include "egress/client_hello.h"

namespace atl::egress {
namespace {

constexpr uint16_t kTlsPort = 443, kHttpPort = 80;

}  // namespace

Result<Protocol> tell_protocol(Protocol wanted, uint16_t port, char first) {
  bool tls = begins_as_tls(first);
  bool may_be_tls = wanted == Protocol::kTls || (wanted == Protocol::kAuto && port != kHttpPort);
  bool may_be_http = wanted == Protocol::kHttp || (wanted == Protocol::kAuto && port != kTlsPort);
  if (tls && may_be_tls) return Protocol::kTls;
  if (!tls && may_be_http) return Protocol::kHttp;
  return Error(Code::kDenied, "neither TLS nor HTTP").with_reason("protocol_refused");
}

Protocol guess_protocol(std::string_view opening) {
  if (!opening.empty() && begins_as_tls(opening[0])) return Protocol::kTls;
  bool is_http = opening.substr(0, opening.find('\n')).find(" HTTP/1.") != opening.npos;
  return is_http ? Protocol::kHttp : Protocol::kTcp;
}

}  // namespace atl::egress
