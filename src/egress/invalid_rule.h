// What is wrong with a policy's JSON, at a field below "network".
#pragma once

#include <string>

#include "base/result.h"

namespace atl::egress {

inline Error invalid_rule(const std::string& field, const std::string& why) {
  return Error(Code::kInvalid, "network." + field + " " + why)
      .with_reason("invalid_network_rule")
      .with_field("network." + field);
}

}  // namespace atl::egress
