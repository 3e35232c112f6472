// Exec: one process run in a sandbox, from the request to the verdict. Its output is on disk,
// addressed by offset; an Exec only knows how far each stream has got.
//
// Lives on the io_context thread, in its sandbox's ExecTable until it has ended. Held by shared_ptr
// because handlers that wait for its end may outlive the table's entry.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "agent/protocol.h"
#include "base/ids.h"
#include "base/result.h"
#include "isolate/event.h"
#include "sandbox/verdict.h"
#include "store/catalog.h"
#include "store/output_log.h"

namespace atl::sandbox {

// What a caller asks for, checked.
struct ExecRequest {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // NAME=value, on top of the sandbox's
  std::string directory = "/home/user";
  agent::User user = agent::User::kUser;
  uint32_t timeout_ms = 0;
  uint64_t output_limit_bytes = 0;
  agent::OnOutputLimit on_output_limit = agent::OnOutputLimit::kCut;
  uint32_t cpu_time_ms = 0;  // 0: not limited
  uint32_t open_files = 0;   // 0: the sandbox's
  std::optional<store::IdempotencyKey> idempotency_key = {};
};

class Exec {
 public:
  // One stream on disk and how far it has got, which is the file's length.
  struct Stream {
    store::OutputLog log;
    uint64_t end;
  };
  struct Streams {
    Stream standard_output;
    Stream standard_error;
  };

  Exec(boost::asio::any_io_executor executor, store::ExecRow row, Streams streams,
       uint64_t output_limit_bytes);

  const store::ExecRow& row() const { return row_; }
  ExecId id() const { return row_.id; }
  bool ended() const { return row_.state == "ended"; }
  bool started() const { return row_.pid != 0; }

  // The offsets held on disk.
  agent::ExecOffsets offsets() const;

  // Waits until it has ended; false when the time ran out first.
  Task<bool> wait_ended(std::chrono::steady_clock::time_point deadline);
  // Waits until it has started or ended.
  Task<void> wait_started();

  // Frames of its agent, which may lie: what does not fit is an error, and nothing was changed.
  void set_started(uint32_t pid);
  // Appends to the log; gives the offset to acknowledge.
  Result<uint64_t> append(const agent::Output& output);
  Result<void> check_exit(const agent::Exit& exit) const;

  // Ends it in memory; the caller has stored the row.
  void set_ended(store::ExecRow row);

 private:
  store::ExecRow row_;
  Streams streams_;
  uint64_t output_limit_bytes_;
  Event changed_;
};

// The row of an exec that ended as its agent says.
store::ExecRow ended_row(store::ExecRow row, const agent::Exit& exit);
// The row of one that ended without a word from it.
store::ExecRow ended_row(store::ExecRow row, Verdict verdict, std::string failure,
                         const agent::ExecOffsets& offsets);

}  // namespace atl::sandbox
