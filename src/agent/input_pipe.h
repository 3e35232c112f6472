// A program's standard input on the agent's side: bytes with offsets that wait for the program to
// read. Nothing here waits for it.
//
//   passed ≤ taken ≤ received,  taken ≤ passed + kWindowBytes - kInputCreditBytes
//
// `received` is what the daemon sent without a gap, `passed` what the pipe or the terminal took,
// `taken` what the daemon is told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/protocol.h"
#include "base/fd.h"

namespace atl::agent {

class InputPipe {
 public:
  enum class Kind : uint8_t { kPipe, kTerminal };

  InputPipe(std::string first, InputMode mode);

  // The agent's end, non-blocking. Without one the program has no input.
  void open(Fd end, Kind kind);

  // From the daemon. False: that breaks the protocol.
  [[nodiscard]] bool take(const Input& input);
  [[nodiscard]] bool end_at(uint64_t offset);

  // While there is a descriptor, its errors are of interest too: the program has closed its end.
  int fd() const { return fd_.get(); }
  bool wants_write() const { return phase_ != Phase::kClosed && fd_ && has_more(); }
  void ready();

  // The program has ended.
  void close();

  // What the daemon must be told now; only if it may send input at all.
  std::optional<InputTaken> next_report();
  // A new connection has been told nothing.
  void repeat_report() { told_.reset(); }

 private:
  // kEnding: no more is received; what is there is still to be passed on.
  enum class Phase : uint8_t { kOpen, kEnding, kClosed };

  bool has_more() const { return head_ < buffer_.size() || phase_ == Phase::kEnding; }
  void pass_on();
  // False if it is not all written yet.
  bool write_buffer();
  void finish();
  uint64_t taken() const;

  InputMode mode_;
  Phase phase_;
  Kind kind_ = Kind::kPipe;
  Fd fd_;
  std::string buffer_;
  size_t head_ = 0;  // first byte of buffer_ not yet passed on
  uint64_t first_bytes_;
  uint64_t received_;
  uint64_t passed_ = 0;
  char last_byte_ = '\n';
  bool end_is_queued_ = false;  // buffer_ holds what ends a terminal's input
  bool closed_by_program_ = false;
  std::optional<InputTaken> told_;
};

}  // namespace atl::agent
