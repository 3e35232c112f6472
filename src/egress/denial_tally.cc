#include "egress/denial_tally.h"

namespace atl::egress {

bool DenialTally::add(const AuditRow& row, SteadyTime now) {
  if (!has_counts_ && now >= window_end_) {
    kinds_.clear();
    window_end_ = now + kTallyTime;
  }
  auto found = kinds_.find(row.flood_key());
  if (found == kinds_.end() && kinds_.size() < kMaxDenialKinds) {
    kinds_.emplace(row.flood_key(), Kind{.row = row});
    return true;
  }
  has_counts_ = true;
  if (found == kinds_.end())
    others_ += row.count;
  else
    found->second.repetitions += row.count;
  return false;
}

std::vector<AuditRow> DenialTally::take() {
  std::vector<AuditRow> rows;
  for (auto& [key, kind] : kinds_) {
    if (kind.repetitions == 0) continue;
    kind.row.count = kind.repetitions;
    rows.push_back(std::move(kind.row));
  }
  if (others_ > 0)
    rows.push_back({.event = AuditEvent::kPacket, .reason = "many_destinations", .count = others_});
  kinds_.clear();
  others_ = 0;
  has_counts_ = false;
  return rows;
}

}  // namespace atl::egress
