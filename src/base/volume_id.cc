#include "base/volume_id.h"

#include "base/check.h"
#include "base/ids.h"

namespace atl {

VolumeId VolumeId::draw() {
  auto id = parse("v" + random_text(kLength - 1));
  ATOLL_CHECK(id.has_value());
  return *id;
}

std::optional<VolumeId> VolumeId::parse(std::string_view text) {
  constexpr std::string_view kBase32 = "abcdefghijklmnopqrstuvwxyz234567";
  if (text.size() != kLength || text[0] != 'v') return std::nullopt;
  if (text.substr(1).find_first_not_of(kBase32) != text.npos) return std::nullopt;
  VolumeId id;
  text.copy(id.text_.data(), kLength);
  return id;
}

}  // namespace atl
