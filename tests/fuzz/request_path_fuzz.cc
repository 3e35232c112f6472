// A path as a sandbox may send it: what has a canonical form has it once and for all, and no form
// hides a dot segment from whoever undoes escapes.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "egress/request_path.h"
#include "http/message.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto canonical = atl::egress::canonical_path(text);
  if (!canonical) return 0;
  auto again = atl::egress::canonical_path(*canonical);
  ATOLL_CHECK(again && *again == *canonical);
  auto decoded = atl::http::percent_decode_bytes(*canonical);
  ATOLL_CHECK(decoded.has_value());
  std::string parts = *decoded + "/";
  for (const char* hidden : {"/../", "/./", "//"})
    ATOLL_CHECK(parts.find(hidden) == parts.npos ||
                (std::string_view(hidden) == "//" && parts.find("//") == parts.size() - 2));
  ATOLL_CHECK(parts.find('\\') == parts.npos && parts.find('\0') == parts.npos);
  return 0;
}
