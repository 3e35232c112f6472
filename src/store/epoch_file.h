// The epoch file: what a database last said of itself, beside the files that its rows name. A
// database that says less is an older copy, or has lost its last rows.
//
// It has two places, written in turn and in place: a kill, a full disk or a loss of power in the
// middle of one leaves the other. What is written is not synced, because a file that says too
// little refuses nothing; create() is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::store {

struct Epoch {
  std::string identity;  // of the database, 32 hexadecimal digits
  // How often rows were changed that outlive the machine, and those of sandboxes, which do not.
  uint64_t synced = 0;
  uint64_t running = 0;
  bool operator==(const Epoch&) const = default;
};

struct EpochMark {
  Epoch epoch;
  std::string boot;  // of the machine, as the kernel names it: `running` counts in it alone
  // What of `synced` is in the file of the database itself, not only in its log: an older file
  // beside a newer log would otherwise be taken for a newer one.
  uint64_t stored = 0;
};

class EpochFile {
 public:
  // Nothing: there is no such file. kCorrupt: neither place holds a mark.
  static Result<std::optional<EpochMark>> read(const std::string& path);
  // Replaces what is there; on disk when this returns.
  static Result<EpochFile> create(const std::string& path, const EpochMark& mark);
  static Result<EpochFile> open(const std::string& path);
  // What create() writes.
  static std::string bytes_of(const EpochMark& mark);

  Result<void> write(const EpochMark& mark);

 private:
  EpochFile(Fd fd, uint64_t number) : fd_(std::move(fd)), number_(number) {}
  Fd fd_;
  uint64_t number_;  // of the newest mark
};

}  // namespace atl::store
