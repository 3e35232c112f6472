// AuditFile: the audit log of one sandbox. Rows are only ever appended; each carries the hash of
// itself and the one before, so that a row that was changed, taken out or moved is seen. A row is
// in the file (write(2)) when append() returns.
//
//   {"n":1,"sandbox":"s…","tenant":1,"time":"…","event":"dns",…,"chain":"<SHA-256>"}
//
// It is a row of segments (audit_segment.h), of which the oldest are given up when all together
// hold more than is to be kept; or nothing more is taken then, if that is what the host wants. A
// last line without its end, left by a crash, was never promised to anybody and is cut off.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "egress/audit_row.h"
#include "egress/audit_segment.h"

namespace atl::egress {

inline constexpr uint64_t kAuditSegmentBytes = 8ull << 20;

// What is kept of each sandbox's log (docs/egress.md).
struct AuditRetention {
  uint64_t bytes = 64ull << 20;  // at least two segments
  enum class WhenFull : unsigned char { kDropOldest, kRefuse } when_full = WhenFull::kDropOldest;
};
// From a file that belongs to root and that nobody else can write; the usual if there is none.
Result<AuditRetention> read_retention(const std::string& path);

struct AuditPage {
  std::vector<std::string> lines;  // JSON objects
  uint64_t next = 0;               // where to go on: number of the segment and offset in it
};

class AuditFile {
 public:
  // Made by the first row. `directory` must stay open.
  static Result<AuditFile> open(int directory, SandboxId id, const AuditRetention& retention = {});

  // kExhausted: it is full. What cannot be recorded must not happen.
  Result<void> append(uint64_t tenant, const AuditRow& row, WallTime time);
  uint64_t rows() const { return link_.rows; }

  // Lines from where an earlier page ended, or 0; at most about `most_bytes` of them. What was
  // given up meanwhile is left out.
  static Result<AuditPage> read(int directory, SandboxId id, uint64_t from, size_t most_bytes);

  static Result<void> remove(int directory, SandboxId id);
  // Removes the oldest logs of sandboxes that are not `is_open` while all take more than that.
  static Result<void> sweep(int directory, uint64_t most_bytes,
                            const std::function<bool(const SandboxId&)>& is_open);

 private:
  AuditFile(int directory, SandboxId id, const AuditRetention& retention)
      : directory_(directory), id_(id), retention_(retention), link_(first_link(id)) {}
  Result<void> recover();
  Result<void> recover_segment(uint64_t number, bool is_last);
  Result<void> begin_segment(uint64_t tenant, WallTime time);
  Result<void> write_row(uint64_t tenant, const AuditRow& row, WallTime time);
  uint64_t bytes() const;

  int directory_;
  SandboxId id_;
  AuditRetention retention_;
  Fd file_;                             // the last segment
  std::map<uint64_t, uint64_t> bytes_;  // of each segment, by number
  AuditLink link_;
};

// Checks every row of a log that has one segment; the error names the first that does not fit.
Result<uint64_t> verify_audit(std::string_view text, const SandboxId& id);

}  // namespace atl::egress
