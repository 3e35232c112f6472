// The files of one sandbox's audit log. A log is cut into segments, so that it can go on for ever
// while the oldest part of it is given up; only the last one grows. The first is `<id>.audit`, the
// n-th after it `<id>.audit.<n>`. The first is always there, empty when it was given up, so that a
// sandbox without a log is known by one look.
//
// The chain of hashes goes on through all of them. A segment that follows another begins with a row
// (event `note`, reason `continued` or `oldest_dropped`) whose `before` is the hash that it goes on
// from, so that it can be checked also when those before it are gone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace atl::egress {

inline constexpr std::string_view kContinued = "continued";
inline constexpr std::string_view kOldestDropped = "oldest_dropped";

std::string segment_name(const SandboxId& id, uint64_t number);

struct SegmentFile {
  SandboxId id;
  uint64_t number;
  uint64_t bytes;
  int64_t changed_at_ns;
};
// Every segment in a directory, in the order of their logs and numbers.
Result<std::vector<SegmentFile>> list_segments(int directory);
// Bytes of each segment of one log, by number, without those that were given up.
Result<std::map<uint64_t, uint64_t>> segments_of(int directory, const SandboxId& id);
Result<void> give_up_segment(int directory, const SandboxId& id, uint64_t number);

// Where a chain has come to.
struct AuditLink {
  uint64_t rows = 0;
  std::string chain = {};  // the hash of the last row
  bool operator==(const AuditLink&) const = default;
};
AuditLink first_link(const SandboxId& id);
// The line of a row, given without its closing brace; the link is then that of the row.
std::string close_row(AuditLink& link, std::string body);

// Where the chain was before a segment that is not the first, as its first row says.
Result<AuditLink> link_before(std::string_view segment);
// Checks every row that follows `link`; gives where the chain is then. The error names the first
// that does not fit.
Result<AuditLink> verify_rows(std::string_view text, AuditLink link);

}  // namespace atl::egress
