// Signatures by Ed25519, as atoll-notary makes them, and the keys that are believed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace atl::store {

inline constexpr size_t kPublicKeyBytes = 32;
inline constexpr size_t kSignatureBytes = 64;

bool is_signed_by(std::string_view key, std::string_view bytes, std::string_view signature);

// Before the digest of a manifest, in what is signed: a signature of something else is none.
inline constexpr std::string_view kManifestPrefix = "atoll snapshot manifest 1\n";

// Keys of 32 bytes.
using PublicKeys = std::vector<std::string>;
// This host's own (`receipt.pub`) and those in `trusted-keys`, a file that may be missing: a key in
// base 64 on each line, `#` begins a comment.
Result<PublicKeys> read_trusted_keys(const std::string& state_directory);

}  // namespace atl::store
