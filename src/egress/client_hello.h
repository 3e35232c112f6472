// The first message of TLS (RFC 8446), read far enough to know which name the client asks for. It
// may come in pieces, and in several records.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::egress {

inline constexpr size_t kMaxHelloBytes = 32 * 1024;

struct ClientHello {
  // As it came. Nothing: no server_name extension.
  std::optional<std::string> server_name;
  // The real name is hidden in another hello (ECH or its forerunner).
  bool is_encrypted = false;
};

// `bytes` is all there is so far, from the first byte of the connection. Nothing while it is
// incomplete; kInvalid when it is none or malformed, or has no end in kMaxHelloBytes.
Result<std::optional<ClientHello>> parse_client_hello(std::string_view bytes);

// Whether the connection begins as TLS does.
inline bool begins_as_tls(char first) { return first == 0x16; }

}  // namespace atl::egress
