// SpeechLog: what an exec says on its control socket, on disk, and its place among what the exec
// printed. A mark says: the speech from this offset on came after that much output. Marks are made
// only where output came between, so they never are more than the output and the speech together.
//
// Reading and appending share one thread; any number of readers read by offset.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "store/output_log.h"

namespace atl::sandbox {

struct SpeechMark {
  uint64_t speech = 0;
  uint64_t standard_output = 0, standard_error = 0;
};

class SpeechLog {
 public:
  SpeechLog(store::OutputLogs& logs, SandboxId sandbox, ExecId exec)
      : logs_(logs), sandbox_(sandbox), exec_(exec) {}

  // Finds what is there from an earlier time.
  Result<void> adopt();

  uint64_t end() const { return end_; }
  uint64_t marks() const { return marks_; }
  // Gives the new end. The caller has checked the offset.
  Result<uint64_t> append(std::string_view bytes, uint64_t standard_output,
                          uint64_t standard_error);
  // At most `most` bytes from `offset` on; nothing at or beyond the end.
  Result<std::string> read(uint64_t offset, size_t most) const;
  // At most `most` of them, from the one of that number on.
  Result<std::vector<SpeechMark>> read_marks(uint64_t from, size_t most) const;

 private:
  Result<void> open_to_append();

  store::OutputLogs& logs_;
  SandboxId sandbox_;
  ExecId exec_;
  std::optional<store::OutputLog> speech_log_, mark_log_;
  bool can_append_ = false;
  uint64_t end_ = 0, marks_ = 0;
  SpeechMark last_ = {};
};

}  // namespace atl::sandbox
