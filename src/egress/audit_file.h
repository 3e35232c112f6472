// AuditFile: the audit log of one sandbox. Rows are only ever appended; each carries the hash of
// itself and the one before, so that a row that was changed, taken out or moved is seen. A row is
// in the file (write(2)) when append() returns.
//
//   {"n":1,"sandbox":"s…","tenant":1,"time":"…","event":"dns",…,"chain":"<SHA-256>"}
//
// A last line without its end, left by a crash, was never promised to anybody and is cut off.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "egress/audit_row.h"

namespace atl::egress {

// Beyond it nothing is allowed any more: what cannot be recorded must not happen.
inline constexpr uint64_t kMaxAuditBytes = 64ull << 20;

struct AuditPage {
  std::vector<std::string> lines;  // JSON objects
  uint64_t next = 0;               // where to go on, as a byte offset
};

class AuditFile {
 public:
  // Made by the first row. `directory` must stay open.
  static Result<AuditFile> open(int directory, SandboxId id);

  // kExhausted: it is full.
  Result<void> append(uint64_t tenant, const AuditRow& row, WallTime time);
  bool is_full() const { return bytes_ >= kMaxAuditBytes; }
  uint64_t rows() const { return rows_; }

  // Lines from a byte offset that an earlier page gave, or 0; at most about `most_bytes` of them.
  static Result<AuditPage> read(int directory, SandboxId id, uint64_t from, size_t most_bytes);

  static Result<void> remove(int directory, SandboxId id);
  // Removes the oldest logs of sandboxes that are not `is_open` while all take more than that.
  static Result<void> sweep(int directory, uint64_t most_bytes,
                            const std::function<bool(const SandboxId&)>& is_open);

 private:
  AuditFile(int directory, SandboxId id) : directory_(directory), id_(id) {}
  Result<void> recover();

  int directory_;
  SandboxId id_;
  Fd file_;
  uint64_t bytes_ = 0;
  uint64_t rows_ = 0;
  std::string chain_;
};

// Checks every row of a whole file; the error names the first that does not fit.
Result<uint64_t> verify_audit(std::string_view text, const SandboxId& id);

}  // namespace atl::egress
