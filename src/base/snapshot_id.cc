#include "base/snapshot_id.h"

#include "base/check.h"
#include "base/ids.h"

namespace atl {

SnapshotId SnapshotId::draw() {
  auto id = parse("n" + random_text(kLength - 1));
  ATOLL_CHECK(id.has_value());
  return *id;
}

std::optional<SnapshotId> SnapshotId::parse(std::string_view text) {
  constexpr std::string_view kBase32 = "abcdefghijklmnopqrstuvwxyz234567";
  if (text.size() != kLength || text[0] != 'n') return std::nullopt;
  if (text.substr(1).find_first_not_of(kBase32) != text.npos) return std::nullopt;
  SnapshotId id;
  text.copy(id.text_.data(), kLength);
  return id;
}

}  // namespace atl
