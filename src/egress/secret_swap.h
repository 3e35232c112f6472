// Puts secrets in the place of their placeholders, in the header of one request. Everything is
// copied byte by byte but the placeholders; one that stands where its secret is not bound ends the
// request.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "egress/secret.h"

namespace atl::egress {

// A placeholder of this sandbox, and what it stands for; null: no secret any more.
struct HeldSecret {
  std::string_view placeholder;
  const Secret* secret;
};

struct SwapPlace {
  const HostName* host;  // null: an address, for which there is no secret
  std::string_view path;
  bool is_tls;  // and ended here
};

// A head with all that is put into it: placeholders are short, and secrets need not be.
inline constexpr size_t kMaxSwappedHeadBytes = 128 * 1024;
// kDenied with reason bad_http.
Result<void> check_swapped_bytes(size_t bytes);

// `head` is whole and well-formed. kDenied with reason secret_not_bound, or bad_http: the result
// would be too long.
Result<std::string> swap_secrets(std::string_view head, const SwapPlace& place,
                                 std::span<const HeldSecret> held);

}  // namespace atl::egress
