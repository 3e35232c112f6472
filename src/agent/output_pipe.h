// The read end of a program's stdout or stderr, or the master of its terminal, emptied into an
// OutputStream as fast as its window allows.
//
// The stream ends when the pipe does, or, because a background child may hold the pipe for ever,
// with the last byte that was in it when the main process had ended: see finish().
#pragma once

#include <optional>

#include "agent/output_stream.h"
#include "base/fd.h"

namespace atl::agent {

class OutputPipe {
 public:
  enum class Kind : uint8_t { kPipe, kTerminal };

  explicit OutputPipe(uint64_t limit_bytes) : stream_(limit_bytes) {}

  void open(Fd read_end, Kind kind) {
    fd_ = std::move(read_end);
    kind_ = kind;
  }
  int fd() const { return fd_.get(); }
  OutputStream& stream() { return stream_; }
  const OutputStream& stream() const { return stream_; }

  // There is a pipe, something more to take from it, and room for it.
  bool wants_read() const;
  // Takes what is there, at most one chunk. `null_device` swallows what is beyond the limit.
  void read_some(int null_device);
  // Takes what is there now, as far as there is room: a program that prints on is not followed.
  void read_present(int null_device);

  // The main process has ended: only what the pipe holds now still belongs to the exec.
  void finish();
  bool finished() const { return left_ == 0; }

  // Ends the reading; gives the pipe away if it is still open at the other end.
  Fd release();

 private:
  // Bytes that are there now, or at most as many as may be.
  uint64_t present() const;
  uint64_t taken() const { return stream_.produced() + stream_.cut(); }
  void took(uint64_t bytes);
  void end();

  Fd fd_;
  Kind kind_ = Kind::kPipe;
  OutputStream stream_;
  std::optional<uint64_t> left_;  // bytes still to take at most, known since finish()
};

// Empties a pipe into the null device, or a terminal. False at its end.
bool discard_some(int pipe, int null_device, uint64_t& discarded, size_t limit);

}  // namespace atl::agent
