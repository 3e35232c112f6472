// SecretUse: a secret that a policy gives to a sandbox, and the placeholder that stands for it
// there. A placeholder is of no use to anybody else: egress swaps it only where the secret is
// bound.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/result.h"

namespace atl::egress {

inline constexpr size_t kMaxSecretUses = 32;
inline constexpr size_t kMaxSecretNameBytes = 64;
inline constexpr std::string_view kPlaceholderPrefix = "atoll-secret-";

struct SecretUse {
  std::string name;
  std::string placeholder = {};  // empty: not drawn yet
  bool operator==(const SecretUse&) const = default;
};

// Also the name of a variable: letters, digits and underscore, no digit first.
bool is_secret_name(std::string_view text);
// Of a secret that is no variable anywhere: hyphens and dots too, neither of them first.
bool is_kept_secret_name(std::string_view text);
// 128 random bits behind the prefix.
std::string draw_placeholder();

// "secrets" of a policy: names, or objects with name and placeholder.
Result<std::vector<SecretUse>> read_secret_uses(const boost::json::object& policy);
boost::json::array secret_uses_json(const std::vector<SecretUse>& uses);

}  // namespace atl::egress
