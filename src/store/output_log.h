// What execs printed, on disk: `<directory>/<sandbox id>/<exec id>.stdout` and `.stderr`, and of an
// exec that speaks `.speech` and `.marks` (sandbox/speech_log.h). The
// length of a file is the truth about how many bytes are held, also after a restart. What append()
// has acknowledged survives the death of this process, not that of the machine.
//
// All logs of a host share one budget in bytes, counted in whole disk blocks, because a flood of
// tiny logs fills the disk as well. OutputLogs may be used by several threads at once; one
// OutputLog by one thread at a time. An OutputLog must not outlive the OutputLogs it came from.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"

namespace atl::store {

enum class OutputStream : unsigned char { kStdout, kStderr, kSpeech, kMarks };

class OutputBudget {
 public:
  explicit OutputBudget(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // False, and nothing taken, if a file cannot grow from the one length to the other.
  bool grow(uint64_t from_bytes, uint64_t to_bytes);
  void release(uint64_t file_bytes);
  void shrink(uint64_t from_bytes, uint64_t to_bytes);
  // A file that is there already, whatever the limit.
  void adopt(uint64_t file_bytes);

  uint64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  uint64_t limit_bytes() const { return limit_bytes_; }

 private:
  const uint64_t limit_bytes_;
  std::atomic<uint64_t> used_bytes_{0};
};

class OutputLog {
 public:
  // Writes all bytes and gives the new end, or writes nothing: what a full disk cut short is taken
  // back, so no byte stands in the log that was not acknowledged. kExhausted: the disk or the
  // budget is full.
  Result<uint64_t> append(std::string_view bytes);
  // At most `most` bytes from `offset` on; nothing at or beyond the end.
  Result<std::string> read(uint64_t offset, size_t most) const;
  Result<uint64_t> size() const;

 private:
  friend class OutputLogs;
  OutputLog(Fd fd, std::string name, OutputBudget& budget)
      : fd_(std::move(fd)), name_(std::move(name)), budget_(&budget) {}
  Error take_back(uint64_t old_end, uint64_t new_end, Error cause);

  Fd fd_;
  std::string name_;  // for messages
  OutputBudget* budget_;
  bool broken_ = false;  // holds bytes that were not acknowledged and could not be taken back
};

class OutputLogs {
 public:
  // Counts what is there against the budget.
  static Result<OutputLogs> open(const std::string& directory, uint64_t budget_bytes);

  // To append to; made if it is missing.
  Result<OutputLog> open_log(const SandboxId& sandbox, ExecId exec, OutputStream stream);
  // To read; nothing if the exec never printed to that stream. Appending to it fails.
  Result<std::optional<OutputLog>> find_log(const SandboxId& sandbox, ExecId exec,
                                            OutputStream stream);
  // Every log of the sandbox. Success also if there is none. Close them first.
  Result<void> remove_sandbox_logs(const SandboxId& sandbox);
  // Who has logs: at start-up, those without a row are left-overs.
  Result<std::vector<SandboxId>> sandboxes() const;

  uint64_t used_bytes() const { return budget_->used_bytes(); }

 private:
  OutputLogs(Fd directory, uint64_t budget_bytes)
      : directory_(std::move(directory)), budget_(std::make_unique<OutputBudget>(budget_bytes)) {}

  Fd directory_;
  std::unique_ptr<OutputBudget> budget_;  // where the logs find it, also after a move
};

}  // namespace atl::store
