// What is spoken on a connection, told by its first bytes.
#pragma once

#include <string_view>

#include "base/result.h"
#include "egress/policy.h"

namespace atl::egress {

// What the first byte begins, as far as the rule and the port let it. kDenied with reason
// protocol_refused.
Result<Protocol> tell_protocol(Protocol wanted, uint16_t port, char first);

// The best guess at what a program would speak, where nothing is decided by it.
Protocol guess_protocol(std::string_view opening);

}  // namespace atl::egress
