// Whether egress is well: its answer to kShowHealth, in `rows` of the reply.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::egress {

struct Health {
  uint64_t descriptors_limit = 0;
  uint64_t descriptors_used = 0;  // of sandboxes and their connections, as they are counted
  uint64_t sandboxes = 0, sandboxes_limit = 0;
  uint64_t connections_refused = 0;  // for want of descriptors
  uint64_t connections_idle_ended = 0;
};

std::string encode_health(const Health& health);
Result<Health> parse_health(std::string_view text);

}  // namespace atl::egress
