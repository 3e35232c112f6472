// ExecOutput: the output streams of one exec on disk, and how far each has got, which is the length
// of its file. A file is made by the first byte: most programs print to one stream or none.
//
// Reading and appending share one thread; any number of readers read by offset.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "agent/protocol.h"
#include "base/ids.h"
#include "base/result.h"
#include "sandbox/speech_log.h"
#include "store/output_log.h"

namespace atl::sandbox {

// Whose it is: a caller's program, or the interpreter of a context, which speaks.
enum class ExecKind : unsigned char { kProgram, kInterpreter };

class ExecOutput {
 public:
  ExecOutput(store::OutputLogs& logs, SandboxId sandbox, ExecId exec,
             ExecKind kind = ExecKind::kProgram)
      : logs_(logs), sandbox_(sandbox), exec_(exec), kind_(kind), speech_(logs, sandbox, exec) {}

  ExecKind kind() const { return kind_; }

  // Finds what is there from an earlier time.
  Result<void> adopt();

  uint64_t end(agent::Stream stream) const {
    return stream == agent::Stream::kSpeech ? speech_.end() : streams_[index_of(stream)].end;
  }
  const SpeechLog& speech() const { return speech_; }
  // Gives the new end. The caller has checked the offset.
  Result<uint64_t> append(agent::Stream stream, std::string_view bytes);
  // At most `most` bytes from `offset` on; nothing at or beyond the end.
  Result<std::string> read(agent::Stream stream, uint64_t offset, size_t most) const;

 private:
  struct Stream {
    std::optional<store::OutputLog> log = {};
    bool can_append = false;
    uint64_t end = 0;
  };
  static size_t index_of(agent::Stream stream) { return stream == agent::Stream::kStdout ? 0 : 1; }

  store::OutputLogs& logs_;
  SandboxId sandbox_;
  ExecId exec_;
  ExecKind kind_;
  std::array<Stream, 2> streams_;
  SpeechLog speech_;
};

}  // namespace atl::sandbox
