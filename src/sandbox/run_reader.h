// RunReader: the events of one run in their order, from any place in it and any number of times,
// while it runs and after. They are read from the exec's logs; nothing of them is kept in memory
// but the one record that is next.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <variant>

#include "sandbox/context_run.h"
#include "sandbox/speech.h"

namespace atl::sandbox {

// How far a run has been read: bytes from the beginning of the run, of each stream.
struct RunPosition {
  uint64_t standard_output = 0, standard_error = 0, speech = 0;
};

struct RunOutput {
  agent::Stream stream;
  std::string bytes;
};
struct RunPending {};  // no more just now: wait for the run to change
struct RunOver {};

using RunEvent = std::variant<RunPending, RunOutput, RunResult, RunError, RunOver>;

class RunReader {
 public:
  RunReader(std::shared_ptr<ContextRun> run, RunPosition from) : run_(std::move(run)), at_(from) {}

  // Behind the event that was given last.
  const RunPosition& position() const { return at_; }
  // A record is next, behind the output that comes before it.
  bool is_before_record() const { return record_.has_value(); }
  // At most `most` bytes of output. Gives fewer of a stream back by unread().
  Result<RunEvent> next(size_t most);
  void unread(const RunOutput& output, size_t bytes);

 private:
  struct Ends {
    uint64_t standard_output, standard_error, speech;
  };
  Ends ends() const;
  Result<bool> find_record(const Ends& ends);
  Result<void> find_place(Ends& until);
  Result<std::optional<RunOutput>> output(agent::Stream stream, uint64_t until, size_t most);

  std::shared_ptr<ContextRun> run_;
  RunPosition at_;
  std::optional<SpeechLines> lines_;
  std::optional<RunEvent> record_;  // the next, and where it begins and ends, from the run's begin
  uint64_t record_start_ = 0, record_end_ = 0;
  uint64_t marks_read_ = 0;
  std::optional<SpeechMark> mark_;  // the last at or before the record
};

}  // namespace atl::sandbox
