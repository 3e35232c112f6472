#include "egress/health.h"

#include "base/bytes.h"

namespace atl::egress {

std::string encode_health(const Health& health) {
  std::string out;
  ByteWriter writer(out);
  writer.u64(health.descriptors_limit);
  writer.u64(health.descriptors_used);
  writer.u64(health.sandboxes);
  writer.u64(health.sandboxes_limit);
  writer.u64(health.connections_refused);
  writer.u64(health.connections_idle_ended);
  return out;
}

Result<Health> parse_health(std::string_view text) {
  ByteReader reader(text);
  Health health;
  health.descriptors_limit = reader.u64();
  health.descriptors_used = reader.u64();
  health.sandboxes = reader.u64();
  health.sandboxes_limit = reader.u64();
  health.connections_refused = reader.u64();
  health.connections_idle_ended = reader.u64();
  if (!reader.done()) return Error(Code::kInvalid, "malformed health");
  return health;
}

}  // namespace atl::egress
