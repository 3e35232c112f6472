// Context: a live interpreter in a sandbox that keeps state from run to run. It is an exec of one
// of our runtimes, told what to do through its input and heard through its third output stream, so
// that both are as resumable as any input and output: atolld may die amid a run and go on with it.
//
//   one at a time: queued ──▶ running ──▶ ended     a run; more than kMaxQueuedRuns are refused
//
// A run whose time is up is interrupted, and keeps its state; if that does not help, the
// interpreter is killed and another takes its place, under the same id, as after a crash. Every
// byte that the interpreter says is user code's: it can end its own run early or late, and nothing
// else.
//
// One thread. Its task owns a share of the sandbox and ends with it.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "sandbox/context_run.h"
#include "sandbox/exec_table.h"
#include "sandbox/run_timer.h"
#include "sandbox/speech.h"
#include "store/context_rows.h"

namespace atl::sandbox {

inline constexpr size_t kMaxQueuedRuns = 64;
inline constexpr size_t kMaxCodeBytes = 1024 * 1024;
inline constexpr uint64_t kMaxRunSpeechBytes = 128ull << 20;

struct RunRequest {
  std::string code;
  std::vector<std::string> environment = {};
  uint32_t timeout_ms = 0;
  std::optional<store::IdempotencyKey> idempotency_key = {};
};

// What its interpreters may use.
struct InterpreterLimits {
  uint64_t output_bytes = 0;  // of each run, per stream
  uint32_t cpu_time_ms = 0;
  uint32_t open_files = 0;
};

class Context : public std::enable_shared_from_this<Context> {
 public:
  // `sandbox` is what the references belong to; its tasks hold a share of it.
  Context(Services& services, ExecTable& execs, std::weak_ptr<void> sandbox, store::ContextRow row,
          InterpreterLimits limits);

  const store::ContextRow& row() const { return row_; }
  bool is_busy() const { return current_ || beginning_ || !queue_.empty(); }
  // When its last run ended; before any time if none has.
  SteadyTime last_end() const { return last_end_; }
  // What the interpreter said about itself; empty while there is none.
  const std::string& interpreter() const { return interpreter_; }

  // Takes up what ran or waited when atolld stopped. `now_ms`: the time of the sandbox, which may
  // be paused.
  void adopt(std::vector<store::RunRow> open_runs, int64_t now_ms);
  // Holds an interpreter ready and runs what is queued, until close(), and ends when the
  // interpreter has.
  static Task<void> tend(std::shared_ptr<Context> self);

  // Returns when there is an interpreter. kUnavailable: it does not start, with what it printed.
  Task<Result<void>> wait_ready();
  // Returns when it is stored.
  Task<Result<std::shared_ptr<ContextRun>>> submit(RunRequest request);
  // Running or waiting; null if there is no such run, or it has ended.
  std::shared_ptr<ContextRun> find_open(uint32_t number) const;
  // What could stand at the end of the code, as JSON of the interpreter's. Nothing if it is busy or
  // knows no completion.
  Task<std::optional<std::string>> complete(std::string code);
  // False if nothing runs. A run that the interpreter has not begun is interrupted when it has.
  bool interrupt();
  // What runs or waits ends as killed; the next interpreter knows nothing.
  void restart();
  // The sandbox stands still: no time passes for what runs, and no interpreter is started, for
  // there may be nothing to start it in. `frozen_ms`: how long it did.
  void hold();
  void go_on(uint64_t frozen_ms);
  // The same as restart, without another. The interpreter is being killed when this returns.
  void close(Verdict verdict);

 private:
  enum class Phase : unsigned char { kNone, kStarting, kReady, kFailed };

  Task<void> start_interpreter();
  void take_up_speech();
  void listen();
  void hear(const SpeechLines::Line& line);
  void begin_next();
  bool can_begin() const;
  void set_begun(ContextRun& run);
  static Task<void> begin(std::shared_ptr<Context> self, std::shared_ptr<ContextRun> run);
  void send(std::shared_ptr<ContextRun> run);
  void finish(Verdict verdict, uint64_t speech_end);
  void fail_queue(Verdict verdict, const std::string& failure);
  void interpreter_ended();
  void store(const store::RunRow& row);
  void check_time();
  void kill(Verdict verdict);
  SteadyTime next_check() const;
  void poke();

  Services& services_;
  ExecTable& execs_;
  std::weak_ptr<void> sandbox_;
  store::ContextRow row_;
  InterpreterLimits limits_;
  Phase phase_ = Phase::kNone;
  std::string interpreter_, failure_;
  std::shared_ptr<Exec> exec_;           // shared with the table of execs
  std::shared_ptr<ContextRun> current_;  // shared with who waits for it, as those that wait
  std::deque<std::shared_ptr<ContextRun>> queue_;
  std::optional<SpeechLines> lines_;
  uint64_t quiet_from_ = 0;  // of the speech: what may be said without a run is bounded too
  RunTimer timer_;
  bool says_begun_ = false;  // of the interpreter; one of an older release does not
  std::optional<SteadyTime> held_since_;
  std::optional<Verdict> killed_for_;
  bool closed_ = false;
  std::optional<std::string> completion_;
  SteadyTime last_end_ = SteadyTime::min();
  std::optional<SteadyTime> begun_at_;     // of the run; after a restart its row says it
  std::shared_ptr<ContextRun> beginning_;  // its row is being stored
  int failed_starts_ = 0;                  // in a row, none of them the program's fault
  Event changed_;
};

}  // namespace atl::sandbox
