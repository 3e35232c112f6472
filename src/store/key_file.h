// The operator's own key: a file that only the user of atolld can read, so that the CLI on this
// host works without set-up. The key in the file is the only local key in force: deleting the file
// and restarting draws a new one and revokes the old.
#pragma once

#include <string>

#include "base/result.h"
#include "store/catalog.h"

namespace atl::store {

// The name of the key in the file. No other key may have it: it is what makes its holder the
// operator.
inline constexpr std::string_view kLocalKeyName = "local";

// `atoll_` and 40 characters of base 32: 200 random bits.
std::string draw_key();
// The form that clients of E2B insist on: `e2b_` and 40 hexadecimal digits: 160 random bits.
std::string draw_e2b_key();
bool is_key(std::string_view text);
std::string draw_key_id();

// Gives the key in the file; draws one if there is no file. The file is durable before the row is
// written, and a key whose row is missing is inserted, so a crash between the two heals at the next
// call. Refuses a file that is not private to us, malformed, or whose key was revoked, and names
// the remedy.
Result<std::string> ensure_local_key(Catalog& catalog, const std::string& path);

}  // namespace atl::store
