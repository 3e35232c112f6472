// ExecOutput: the output streams of one exec on disk, and how far each has got, which is the length
// of its file. A file is made by the first byte: most programs print to one stream or none.
//
// When the disk must not get fuller, or a share of it is used up, a stream ends for good: what
// comes from then on is counted and dropped, as beyond a limit of output.
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

  // Of what is kept; and of what came, which is what the agent knows.
  uint64_t end(agent::Stream stream) const {
    return stream == agent::Stream::kSpeech ? speech_.end() : streams_[index_of(stream)].end;
  }
  uint64_t taken(agent::Stream stream) const { return end(stream) + dropped(stream); }
  uint64_t dropped(agent::Stream stream) const { return dropped_[static_cast<size_t>(stream)]; }
  bool drops() const { return dropped_ != store::DroppedOutput{}; }
  const SpeechLog& speech() const { return speech_; }
  // Gives how far it was taken. The caller has checked the offset.
  Result<uint64_t> append(agent::Stream stream, std::string_view bytes);
  // At most `most` bytes from `offset` on; nothing at or beyond the end.
  Result<std::string> read(agent::Stream stream, uint64_t offset, size_t most) const;

 private:
  struct Stream {
    std::optional<store::OutputLog> log = {};
    bool can_append = false;
    uint64_t end = 0;
  };
  Result<void> keep(agent::Stream stream, std::string_view bytes);
  static size_t index_of(agent::Stream stream) { return stream == agent::Stream::kStdout ? 0 : 1; }

  store::OutputLogs& logs_;
  SandboxId sandbox_;
  ExecId exec_;
  ExecKind kind_;
  std::array<Stream, 2> streams_;
  SpeechLog speech_;
  store::DroppedOutput dropped_ = {};  // by agent::Stream
};

}  // namespace atl::sandbox
