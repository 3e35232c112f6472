// Monitor: the keeper's end of QEMU's control socket (QMP), by which a machine is saved and another
// begins where that one was. What comes from there is as hostile as the guest: lines of bounded
// length, of which nothing but their first words is looked at.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace atl::microvm {

class Monitor {
 public:
  // When QEMU has greeted.
  static Result<Monitor> open(Fd socket);

  // Both begin with it: of or for all of the machine but its memory, which is in a file already.
  Result<void> prepare(int file);
  // It stands still from then on.
  Result<void> save();
  // Begins where another was saved; returns when it runs.
  Result<void> restore();
  // The machine stands still, and no time passes for it; an error: it runs.
  Result<void> stop();
  Result<void> go_on();

 private:
  explicit Monitor(Fd socket) : socket_(std::move(socket)) {}
  Result<std::string> read_line(int patience_ms);
  Result<void> tell(std::string_view command, std::span<const int> fds = {});
  // To the last that it was told.
  Result<std::string> await_answer(int patience_ms);
  Result<std::string> call(std::string_view command, std::span<const int> fds = {});
  // Until the answer to `command` has `wanted` in it, and never `refused`.
  Result<void> await(std::string_view command, std::string_view wanted, std::string_view refused);

  Fd socket_;
  std::string received_;
  int unanswered_ = 0;
};

}  // namespace atl::microvm
