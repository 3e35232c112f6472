// Exec: one process run in a sandbox, from the request to the verdict. Its output is on disk,
// addressed by offset; an Exec only knows how far each stream has got.
//
// Lives on the io_context thread, in its sandbox's ExecTable until it has ended. Held by shared_ptr
// because handlers that wait for its end may outlive the table's entry.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "agent/protocol.h"
#include "base/ids.h"
#include "base/result.h"
#include "isolate/event.h"
#include "sandbox/exec_output.h"
#include "sandbox/verdict.h"
#include "store/catalog.h"

namespace atl::sandbox {

// What a caller asks for, checked.
struct ExecRequest {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // NAME=value, on top of the sandbox's
  std::string directory = {};            // empty: the user's home
  std::string user = "user";
  std::string input = {};  // the first bytes of its standard input
  agent::InputMode input_mode = agent::InputMode::kEnds;
  std::optional<agent::TerminalSize> terminal = {};
  uint32_t timeout_ms = 0;
  uint64_t output_limit_bytes = 0;
  agent::OnOutputLimit on_output_limit = agent::OnOutputLimit::kCut;
  uint32_t cpu_time_ms = 0;  // 0: not limited
  uint32_t open_files = 0;   // 0: the sandbox's
  std::optional<store::IdempotencyKey> idempotency_key = {};
  // It is the interpreter of this context: it speaks, has no time limit, and is not in use by
  // running alone.
  std::optional<store::ContextRow> context = {};
};

// How far the agent has taken its input. Only one caller may add to it at a time.
struct ExecInput {
  uint64_t taken = 0;
  bool known = false;  // after a restart, not before the agent has said so
  bool closed = false;
  bool busy = false;
  // Bytes from `pending_at` on that were sent and perhaps lost with a stream. They stay although
  // whoever brought them has gone: the next bytes must not take their place.
  std::string pending = {};
  uint64_t pending_at = 0;
  // The one client at its terminal. A new one takes the place of the old, which notices by the
  // number.
  bool attached = false;
  uint64_t attachment = 0;
};

class Exec {
 public:
  Exec(boost::asio::any_io_executor executor, store::ExecRow row, ExecOutput output,
       uint64_t output_limit_bytes);

  const store::ExecRow& row() const { return row_; }
  ExecId id() const { return row_.id; }
  bool ended() const { return row_.state == "ended"; }
  bool started() const { return row_.pid != 0; }
  const ExecOutput& output() const { return output_; }
  // Who changes it calls notify().
  ExecInput& input() { return input_; }

  // How far its output was taken, as the agent counts.
  agent::ExecOffsets offsets() const;

  // Waits until anything of it has changed; false when the time ran out first or the waiting
  // coroutine was cancelled. Without a deadline, only when cancelled.
  Task<bool> wait_changed(std::chrono::steady_clock::time_point deadline =
                              std::chrono::steady_clock::time_point::max());
  // Waits until it has ended; false as above.
  Task<bool> wait_ended(std::chrono::steady_clock::time_point deadline =
                            std::chrono::steady_clock::time_point::max());
  void notify() { changed_.notify_all(); }

  // Frames of its agent, which may lie: what does not fit is an error, and nothing was changed.
  void set_started(uint32_t pid);
  // Appends to the log; gives the offset to acknowledge.
  Result<uint64_t> append(const agent::Output& output);
  Result<void> set_taken(const agent::InputTaken& taken);
  Result<void> check_exit(const agent::Exit& exit) const;

  // Ends it in memory; the caller has stored the row.
  void set_ended(store::ExecRow row);

 private:
  store::ExecRow row_;
  ExecOutput output_;
  uint64_t output_limit_bytes_;
  ExecInput input_;
  Event changed_;
};

// How much of its output is kept.
agent::ExecOffsets kept_offsets(const Exec& exec);

// The row of an exec that ended as its agent says; of its output some may have been dropped here.
store::ExecRow ended_row(const Exec& exec, agent::Exit exit);
// The row of one that ended without a word from it.
store::ExecRow ended_row(store::ExecRow row, Verdict verdict, std::string failure,
                         const agent::ExecOffsets& offsets);

}  // namespace atl::sandbox
