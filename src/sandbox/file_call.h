// FileCall: one file operation under way inside a sandbox, as records both ways
// (agent/file_protocol.h). Destroying it gives the operation up; the worker inside is then killed.
//
// The records come from inside: a malformed one is an error of reason `bad_answer`, and who reads
// them checks what they claim. How the worker failed becomes our code and reason here, once.
//
// One thread. Two coroutines may use one call, if one reads and the other sends.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/file_protocol.h"
#include "base/clock.h"
#include "base/result.h"
#include "sandbox/sandbox.h"

namespace atl::sandbox {

// Without progress, before an operation is given up.
inline constexpr std::chrono::seconds kFilePatience{60};

class FileCall {
 public:
  // The sandbox must be running, or is woken if it may be.
  static Task<Result<std::unique_ptr<FileCall>>> open(std::shared_ptr<Sandbox> sandbox,
                                                      agent::FileRequest request);

  // The next record, valid until the next call; nothing once the worker is done. kTimeout may be
  // followed by another try.
  Task<Result<std::optional<agent::FileRecord>>> next(SteadyTime deadline);
  Task<Result<std::optional<agent::FileRecord>>> next() { return next(patience()); }
  // The next record, which must be of that type.
  Task<Result<agent::FileRecord>> expect(agent::RecordType type);
  // That nothing follows, and which DoneFlags the worker set.
  Task<Result<uint8_t>> expect_done();

  // If the worker has failed meanwhile, the error is its own.
  Task<Result<void>> send(std::string record);

  // However much progress there is, nothing is waited for beyond this.
  void set_deadline(SteadyTime deadline) { deadline_ = deadline; }
  SteadyTime patience() const {
    return std::min(deadline_, std::chrono::steady_clock::now() + kFilePatience);
  }

 private:
  FileCall(std::shared_ptr<Sandbox> sandbox, std::unique_ptr<Channel> channel)
      : sandbox_(std::move(sandbox)), channel_(std::move(channel)) {}

  std::shared_ptr<Sandbox> sandbox_;  // the channel needs its talk
  std::unique_ptr<Channel> channel_;
  agent::RecordReader reader_;
  SteadyTime deadline_ = SteadyTime::max();
  std::optional<uint8_t> done_;  // DoneFlags
};

// What a worker's errno means to a caller; `about` is the operation and the path.
Error file_error(int system_errno, std::string_view about);
// For answers that no honest worker gives.
Error bad_answer(std::string_view what);

// Bytes that a program chose, as text for a message.
std::string shown(std::string_view bytes);

// Absolute, no empty, `.` or `..` part, no NUL, within the kernel's lengths; nothing else is ever
// sent to a worker.
Result<void> check_path(std::string_view path);
// The same for what is relative to a root: an entry of an archive or an artifact.
bool is_clean_relative(std::string_view path);
// Whether `path` lies beneath `root`, both clean.
bool is_beneath(std::string_view root, std::string_view path);

}  // namespace atl::sandbox
