// A file that only its own program can read: AES-256-GCM with a random nonce. What it is (`label`)
// is part of what is authenticated.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::egress {

inline constexpr size_t kSealKeyBytes = 32;

// Nonce, ciphertext, tag.
Result<std::string> seal(std::string_view key, std::string_view label, std::string_view plain);
// kCorrupt: another key, another label, or changed bytes.
Result<std::string> unseal(std::string_view key, std::string_view label, std::string_view sealed);

// Never half a file, never one that others may read, and durable when it returns.
Result<void> write_private_file(int directory, const std::string& name, std::string_view bytes);

}  // namespace atl::egress
