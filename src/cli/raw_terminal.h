// RawTerminal: while it lives the user's terminal passes every key on and shows bytes as they are.
// It is put back in every case that a process can notice: the destructor, and a handler of the
// signals that end a process, also those of a failed check.
#pragma once

#include <termios.h>

#include "base/result.h"

namespace atl::cli {

class RawTerminal {
 public:
  // One at a time.
  static Result<RawTerminal> enter(int fd);
  RawTerminal(RawTerminal&& other) noexcept;
  RawTerminal& operator=(RawTerminal&&) = delete;
  ~RawTerminal();

 private:
  explicit RawTerminal(int fd) : fd_(fd) {}
  int fd_;
};

struct TerminalSize {
  unsigned columns = 80;
  unsigned rows = 24;
};
// The usual one when `fd` is no terminal.
TerminalSize terminal_size(int fd);

}  // namespace atl::cli
