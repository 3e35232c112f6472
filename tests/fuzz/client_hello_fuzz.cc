// What a program in a sandbox may send as the first bytes of TLS.
#include <cstdint>

#include "base/check.h"
#include "egress/client_hello.h"

using namespace atl::egress;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto hello = parse_client_hello(bytes);
  if (!hello || !*hello) return 0;
  ATOLL_CHECK(begins_as_tls(bytes[0]));
  if ((*hello)->server_name) ATOLL_CHECK(!(*hello)->server_name->empty());
  return 0;
}
