// What execs printed, on disk: `<directory>/<sandbox id>/<exec id>.stdout` and `.stderr`, and of an
// exec that speaks `.speech` and `.marks` (sandbox/speech_log.h). The
// length of a file is the truth about how many bytes are held, also after a restart; `.dropped`
// says how many came after them that were not kept. What append() has acknowledged survives the
// death of this process, not that of the machine.
//
// All logs of a host share one budget in bytes, counted in whole disk blocks, because a flood of
// tiny logs fills the disk as well; those of one tenant may have half of it, and of the room that
// there is, but for the operator's own. Nothing is appended
// that would leave less of the disk free than must be. OutputLogs may be used by several threads at
// once; one OutputLog by one thread at a time. An OutputLog must not outlive the OutputLogs it came
// from.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "store/disk_floor.h"
#include "store/lost_found.h"
#include "store/tenant.h"

namespace atl::store {

enum class OutputStream : unsigned char { kStdout, kStderr, kSpeech, kMarks };

class OutputBudget {
 public:
  // What is taken from it is taken from `whole` too.
  explicit OutputBudget(uint64_t limit_bytes, OutputBudget* whole = nullptr)
      : limit_bytes_(limit_bytes), whole_(whole) {}

  // False, and nothing taken, if a file cannot grow from the one length to the other.
  bool grow(uint64_t from_bytes, uint64_t to_bytes);
  void release(uint64_t file_bytes);
  void shrink(uint64_t from_bytes, uint64_t to_bytes);
  // A file that is there already, whatever the limit.
  void adopt(uint64_t file_bytes);
  // What `whole` counts already.
  void count(uint64_t block_bytes) { used_bytes_.fetch_add(block_bytes); }

  bool is_share() const { return whole_ != nullptr; }
  uint64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  uint64_t limit_bytes() const { return limit_bytes_; }

 private:
  const uint64_t limit_bytes_;
  OutputBudget* const whole_;
  std::atomic<uint64_t> used_bytes_{0};
};

// How many bytes of stdout, stderr and speech came and were not kept.
using DroppedOutput = std::array<uint64_t, 3>;

class OutputLog {
 public:
  // Writes all bytes and gives the new end, or writes nothing: what a full disk cut short is taken
  // back, so no byte stands in the log that was not acknowledged. kExhausted: the disk or a budget
  // is full.
  Result<uint64_t> append(std::string_view bytes);
  // At most `most` bytes from `offset` on; nothing at or beyond the end.
  Result<std::string> read(uint64_t offset, size_t most) const;
  Result<uint64_t> size() const;

 private:
  friend class OutputLogs;
  OutputLog(Fd fd, std::string name, OutputBudget& budget, DiskFloor& floor)
      : fd_(std::move(fd)), name_(std::move(name)), budget_(&budget), floor_(&floor) {}
  Error take_back(uint64_t old_end, uint64_t new_end, Error cause);

  Fd fd_;
  std::string name_;  // for messages
  OutputBudget* budget_;
  DiskFloor* floor_;
  bool broken_ = false;  // holds bytes that were not acknowledged and could not be taken back
};

class OutputLogs {
 public:
  // Counts what is there against the budget.
  static Result<OutputLogs> open(const std::string& directory, uint64_t budget_bytes);

  // So much of the disk must stay free.
  void keep_free(uint64_t bytes) { shares_->floor.set(bytes); }
  // Whose share the logs of a sandbox are of; until then they are of nobody's.
  Result<void> set_owner(const SandboxId& sandbox, TenantId tenant);

  // To append to; made if it is missing.
  Result<OutputLog> open_log(const SandboxId& sandbox, ExecId exec, OutputStream stream);
  // To read; nothing if the exec never printed to that stream. Appending to it fails.
  Result<std::optional<OutputLog>> find_log(const SandboxId& sandbox, ExecId exec,
                                            OutputStream stream);
  // Of an exec; all zero if everything was kept. In place once it is not zero, so that it can be
  // said again on a full disk.
  Result<DroppedOutput> dropped(const SandboxId& sandbox, ExecId exec) const;
  Result<void> set_dropped(const SandboxId& sandbox, ExecId exec, const DroppedOutput& dropped);
  // Every log of the sandbox. Success also if there is none. Close them first.
  Result<void> remove_sandbox_logs(const SandboxId& sandbox);
  // The same of one that no row names.
  Result<void> clear_unlisted(const SandboxId& sandbox, Unlisted fate);
  // Who has logs: at start-up, those without a row are left-overs.
  Result<std::vector<SandboxId>> sandboxes() const;

  uint64_t used_bytes() const { return shares_->all.used_bytes(); }

 private:
  // Where the logs find it, also after a move. What is in the maps stays.
  struct Shares {
    Shares(const std::string& directory, uint64_t budget_bytes)
        : all(budget_bytes), floor(directory) {}
    OutputBudget all;
    DiskFloor floor;
    std::mutex mutex;
    std::map<TenantId, OutputBudget> of_tenants = {};
    std::map<SandboxId, OutputBudget*> of_sandboxes = {};
  };
  OutputLogs(std::string path, Fd directory, std::unique_ptr<Shares> shares)
      : path_(std::move(path)), directory_(std::move(directory)), shares_(std::move(shares)) {}
  OutputBudget& budget_of(const SandboxId& sandbox);
  // How many bytes of disk the files of a sandbox have.
  Result<uint64_t> held_by(const SandboxId& sandbox) const;

  std::string path_;
  Fd directory_;
  std::unique_ptr<Shares> shares_;
};

}  // namespace atl::store
