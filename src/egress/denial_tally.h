// DenialTally: keeps a flood of denials from becoming a flood of rows, without losing the count.
// The first attempt of each kind is a row at once; its repetitions in the same second are one more
// row at the second's end. When there are too many kinds, the rest is counted together.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "egress/audit_row.h"

namespace atl::egress {

inline constexpr size_t kMaxDenialKinds = 64;  // per sandbox and second
inline constexpr std::chrono::seconds kTallyTime{1};

class DenialTally {
 public:
  // Whether the row is to be written now; otherwise it is counted.
  bool add(const AuditRow& row, SteadyTime now);
  bool has_due(SteadyTime now) const { return has_counts_ && now >= window_end_; }
  // The rows of a second that has passed.
  std::vector<AuditRow> take();

 private:
  struct Kind {
    AuditRow row;
    uint64_t repetitions = 0;
  };
  SteadyTime window_end_{};
  bool has_counts_ = false;
  std::map<std::string, Kind> kinds_;
  uint64_t others_ = 0;
};

}  // namespace atl::egress
