// Operations of the control socket that are asked and answered by text: in `policy` of the request
// and `rows` of the reply (protocol.h).
#pragma once

#include "egress/protocol.h"

namespace atl::egress {

// The certificate that the named sandbox must trust to be inspected.
inline constexpr auto kShowAuthority = static_cast<Operation>(32);
// Of the tenant, and of no sandbox: put_secret.h, answered by JSON without its value; a name;
// nothing, answered by a line of such JSON for each.
inline constexpr auto kPutSecret = static_cast<Operation>(33);
inline constexpr auto kRemoveSecret = static_cast<Operation>(34);
inline constexpr auto kListSecrets = static_cast<Operation>(35);
// Of no sandbox: asks nothing, answered by health.h.
inline constexpr auto kShowHealth = static_cast<Operation>(36);

inline bool is_text_call(Operation operation) {
  return operation >= kShowAuthority && operation <= kShowHealth;
}
inline bool is_about_secrets(Operation operation) {
  return operation >= kPutSecret && operation <= kListSecrets;
}

}  // namespace atl::egress
