#include "sandbox/context.h"

#include <signal.h>

#include <algorithm>

#include "async/spawn.h"
#include "base/log.h"
#include "sandbox/context_language.h"

namespace atl::sandbox {
namespace {

constexpr size_t kPieceBytes = 64 * 1024;
constexpr size_t kHeadBytes = 64 * 1024;  // of a line: enough for all that matters here
constexpr std::chrono::seconds kCompletionTime{2};
constexpr std::string_view kCompletionType = "application/vnd.atoll.completion+json";
constexpr size_t kFailureBytes = 2048;
constexpr int kMaxFailedStarts = 2;

SteadyTime now() { return std::chrono::steady_clock::now(); }

Error closed() {
  return Error(Code::kConflict, "the context is being deleted").with_reason("context_deleted");
}

Verdict verdict_named(std::string_view name) {
  for (auto verdict = Verdict::kSandboxGone; verdict != Verdict::kOk;
       verdict = static_cast<Verdict>(static_cast<unsigned char>(verdict) + 1))
    if (verdict_name(verdict) == name) return verdict;
  return Verdict::kOk;
}

Verdict verdict_of(RunEnd end) {
  if (end == RunEnd::kException) return Verdict::kException;
  return end == RunEnd::kInterrupted ? Verdict::kInterrupted : Verdict::kOk;
}

// Owns what it sends, because the context may go before; the first argument owns the control.
Task<void> deliver(std::shared_ptr<void>, const ExecControl& control, std::shared_ptr<Exec> exec,
                   std::string message, uint64_t offset) {
  while (!exec->ended()) {
    auto turn = co_await control.take_turn(exec);
    Result<void> written = turn ? Result<void>() : Result<void>(std::move(turn).error());
    if (turn) {
      uint64_t taken = exec->input().taken;
      std::string_view rest = message;
      rest.remove_prefix(std::min<uint64_t>(rest.size(), taken - std::min(taken, offset)));
      written = co_await control.write(**turn, rest);
    }
    if (written || written.error().code() != Code::kUnavailable) co_return;
  }
}

}  // namespace

Context::Context(Services& services, ExecTable& execs, std::weak_ptr<void> sandbox,
                 store::ContextRow row, InterpreterLimits limits)
    : services_(services),
      execs_(execs),
      sandbox_(std::move(sandbox)),
      row_(std::move(row)),
      limits_(limits),
      changed_(services.executor) {}

void Context::adopt(std::vector<store::RunRow> open_runs, int64_t now_ms) {
  auto id = ExecId::from_number(row_.exec);
  if (id) exec_ = execs_.find_live(*id);
  for (store::RunRow& run : open_runs) {
    row_.next_run = std::max(row_.next_run, run.number + 1);
    bool runs = run.state == "running";
    auto open = std::make_shared<ContextRun>(services_.executor, std::move(run), nullptr);
    runs ? current_ = open : queue_.emplace_back(open);
  }
  if (!exec_) {
    // It ended, or atolld did before it had started one. What ran in it is over.
    if (current_) current_->row().state_lost = true;
    if (current_) finish(Verdict::kPlatformError, current_->row().speech_begin);
    return;
  }
  take_up_speech();
  if (!current_) return;
  store::RunRow& row = current_->row();
  current_->set_exec(exec_);
  lines_.emplace(row.speech_begin, kHeadBytes);
  int64_t age_ms = now_ms - row.started_at_ms - static_cast<int64_t>(row.frozen_ms);
  int64_t left_ms = std::max<int64_t>(0, int64_t{row.timeout_ms} - std::max<int64_t>(0, age_ms));
  timer_.start(now() + std::chrono::milliseconds(left_ms), says_begun_);
  send(current_);
}

void Context::take_up_speech() {
  const SpeechLog& speech = exec_->output().speech();
  auto first = speech.read(0, kHeadBytes);
  std::string_view rest = first ? std::string_view(*first) : std::string_view();
  phase_ = Phase::kStarting;
  lines_.emplace(0, kHeadBytes);
  if (auto line = lines_->take(rest)) hear(*line);
  quiet_from_ = speech.end();
  // What was said without a run is nothing to hear again.
  if (phase_ == Phase::kReady) lines_.emplace(speech.end(), kHeadBytes);
  if (phase_ == Phase::kStarting) timer_.await_interpreter(now());
}

Task<void> Context::tend(std::shared_ptr<Context> self) {
  std::shared_ptr<void> sandbox = self->sandbox_.lock();
  while (!self->closed_ || self->exec_) {
    bool is_wanted = self->phase_ == Phase::kNone || !self->queue_.empty();
    if (!self->exec_ && is_wanted && !self->held_since_) co_await self->start_interpreter();
    if (self->exec_) self->listen();
    if (self->exec_ && self->exec_->ended()) self->interpreter_ended();
    if (self->phase_ == Phase::kNone && (self->closed_ || !self->held_since_)) continue;
    self->check_time();
    self->begin_next();
    if (self->current_) self->current_->notify();
    std::shared_ptr<Exec> exec = self->exec_;
    if (exec) {
      static_cast<void>(co_await exec->wait_changed(self->next_check()));
    } else {
      static_cast<void>(co_await self->changed_.wait_until(self->next_check()));
    }
  }
  self->changed_.notify_all();
}

void Context::poke() {
  if (exec_) exec_->notify();
  changed_.notify_all();
}

Task<void> Context::start_interpreter() {
  phase_ = Phase::kStarting;
  std::vector<std::string> environment = split_variables(row_.environment);
  ExecRequest request{.arguments = interpreter_of(row_.language),
                      .environment = environment,
                      .directory = row_.directory};
  request.input = start_message(row_.language, environment);
  request.input_mode = agent::InputMode::kOpen;
  request.output_limit_bytes = limits_.output_bytes;
  request.cpu_time_ms = limits_.cpu_time_ms;
  request.open_files = limits_.open_files;
  request.context = row_;
  auto started = co_await execs_.create(std::move(request), row_.description);
  if (!started) {
    phase_ = Phase::kFailed;
    failure_ = started.error().message();
    fail_queue(Verdict::kPlatformError, failure_);
    changed_.notify_all();
    co_return;
  }
  exec_ = std::move(*started);
  row_.exec = exec_->id().number();
  lines_.emplace(0, kHeadBytes);
  quiet_from_ = 0;
  timer_.await_interpreter(now());
  if (closed_) kill(Verdict::kKilled);
}

void Context::listen() {
  const SpeechLog& speech = exec_->output().speech();
  while (lines_->next() < speech.end()) {
    auto piece = speech.read(lines_->next(), kPieceBytes);
    if (!piece) {
      log_error("speech cannot be read", {{"context", row_.id.view()}, piece.error()});
      return kill(Verdict::kPlatformError);
    }
    std::string_view rest = *piece;
    while (!rest.empty())
      if (auto line = lines_->take(rest)) hear(*line);
  }
  uint64_t from = current_ ? current_->row().speech_begin : quiet_from_;
  bool too_much = speech.end() - std::min(from, speech.end()) > kMaxRunSpeechBytes;
  // One whose output is dropped would print and say nothing ever after; the next one begins anew.
  if (too_much || exec_->output().drops()) kill(Verdict::kOutputLimit);
}

void Context::hear(const SpeechLines::Line& line) {
  if (!line.is_whole) return;
  auto fields = speech_fields(line.text);
  if (!fields) return;
  auto ready = parse_ready(*fields);
  if (phase_ == Phase::kStarting && ready) {
    phase_ = Phase::kReady;
    interpreter_ = std::move(ready->name);
    says_begun_ = ready->says_begun;
    timer_.interpreter_ready();
    quiet_from_ = std::max(quiet_from_, line.end);
    failed_starts_ = 0;
    changed_.notify_all();
  }
  auto completion = parse_result(*fields, 0);
  if (completion && completion->data.front().first == kCompletionType) {
    completion_ = std::move(completion->data.front().second);
    changed_.notify_all();
  }
  if (!current_) return;
  if (parse_begun(*fields, current_->row().number)) timer_.set_begun(now());
  auto end = parse_end(*fields, current_->row().number);
  if (end) finish(timer_.timed_out() ? Verdict::kWallTime : verdict_of(*end), line.end);
}

bool Context::can_begin() const {
  if (phase_ != Phase::kReady || current_ || beginning_ || killed_for_ || closed_) return false;
  ExecInput& input = exec_->input();
  return input.known && !input.busy && input.pending.empty();
}

void Context::begin_next() {
  if (!exec_ || queue_.empty() || !can_begin()) return;
  auto run = std::move(queue_.front());
  queue_.pop_front();
  beginning_ = run;
  // detached: one write; owns all that it uses
  spawn(services_.executor, begin(shared_from_this(), std::move(run)));
}

void Context::set_begun(ContextRun& run) {
  store::RunRow& row = run.row();
  const ExecOutput& output = exec_->output();
  row.state = "running";
  row.exec = exec_->id().number();
  row.started_at_ms = to_milliseconds(services_.clock.wall_now());
  row.input_offset = exec_->input().taken;
  row.stdout_begin = output.end(agent::Stream::kStdout);
  row.stderr_begin = output.end(agent::Stream::kStderr);
  row.speech_begin = lines_->next();
  row.marks_begin = output.speech().marks();
  run.set_exec(exec_);
}

Task<void> Context::begin(std::shared_ptr<Context> self, std::shared_ptr<ContextRun> run) {
  std::shared_ptr<void> sandbox = self->sandbox_.lock();
  self->set_begun(*run);
  // Before its input is sent: else a restart would not know that it is under way, and send it
  // again.
  auto update = [row = run->row()](store::Catalog& catalog) {
    return catalog.contexts().update_run(row);
  };
  auto stored = co_await self->services_.ledger.run(update);
  if (!stored) log_error("a run could not be stored", {stored.error()});
  self->send(std::move(run));
}

void Context::send(std::shared_ptr<ContextRun> run) {
  beginning_.reset();
  store::RunRow& row = run->row();
  if (!exec_ || exec_->ended() || exec_->id().number() != row.exec) {
    // The interpreter ended meanwhile and has not seen it: the next one does.
    row.state = "queued";
    run->set_exec(nullptr);
    queue_.push_front(std::move(run));
    if (closed_) fail_queue(Verdict::kKilled, "");
    return poke();
  }
  current_ = run;
  begun_at_ = now();
  if (!timer_.is_running())
    timer_.start(now() + std::chrono::milliseconds(row.timeout_ms), says_begun_);
  execs_.control().grant(
      *exec_, {row.stdout_begin + limits_.output_bytes, row.stderr_begin + limits_.output_bytes});
  auto delivery = deliver(sandbox_.lock(), execs_.control(), exec_, run_message(row_.language, row),
                          row.input_offset);
  // detached: owns the message, and ends with the exec or when all is sent
  spawn(services_.executor, std::move(delivery));
  poke();
}

void Context::finish(Verdict verdict, uint64_t speech_end) {
  auto run = std::exchange(current_, nullptr);
  store::RunRow& row = run->row();
  row.state = "ended";
  row.verdict = verdict_name(verdict);
  row.speech_end = std::max(speech_end, row.speech_begin);
  row.stdout_end = row.stdout_begin;
  row.stderr_end = row.stderr_begin;
  if (run->exec()) {
    row.stdout_end = run->exec()->output().end(agent::Stream::kStdout);
    row.stderr_end = run->exec()->output().end(agent::Stream::kStderr);
  }
  auto wall = std::chrono::milliseconds(to_milliseconds(services_.clock.wall_now()) -
                                        row.started_at_ms - static_cast<int64_t>(row.frozen_ms));
  auto wall_us = std::chrono::duration_cast<std::chrono::microseconds>(wall).count();
  if (begun_at_)
    wall_us = std::chrono::duration_cast<std::chrono::microseconds>(now() - *begun_at_).count();
  row.wall_us = static_cast<uint64_t>(std::max<int64_t>(0, wall_us));
  begun_at_.reset();
  uint64_t most = limits_.output_bytes;
  if (row.stdout_end - row.stdout_begin >= most || row.stderr_end - row.stderr_begin >= most)
    row.limits_hit |= bit(agent::LimitBit::kOutput);
  if (verdict == Verdict::kWallTime) row.limits_hit |= bit(agent::LimitBit::kWallTime);
  timer_.end();
  quiet_from_ = row.speech_end;
  last_end_ = services_.clock.steady_now();
  store(row);
  run->notify();
}

void Context::store(const store::RunRow& row) {
  auto update = [](Ledger& ledger, store::RunRow ended) -> Task<void> {
    auto job = [&ended](store::Catalog& catalog) { return catalog.contexts().update_run(ended); };
    auto stored = co_await ledger.run(job);
    // The end is in the log, where the next start finds it.
    if (!stored) log_error("the end of a run could not be stored", {stored.error()});
  };
  // detached: one write, which owns its row
  spawn(services_.executor, update(services_.ledger, row));
}

void Context::fail_queue(Verdict verdict, const std::string& failure) {
  for (auto& run : std::exchange(queue_, {})) {
    store::RunRow& row = run->row();
    row.state = "ended";
    row.verdict = verdict_name(verdict);
    row.failure = failure;
    store(row);
    run->notify();
  }
}

void Context::interpreter_ended() {
  const store::ExecRow& ended = exec_->row();
  Verdict verdict = killed_for_.value_or(verdict_named(ended.verdict));
  if (timer_.timed_out()) verdict = Verdict::kWallTime;
  bool was_ready = phase_ == Phase::kReady;
  if (!was_ready) {
    auto said = exec_->output().read(agent::Stream::kStderr, 0, kFailureBytes);
    failure_ = said && !said->empty() ? *said : "the interpreter ended with " + ended.verdict;
  }
  if (current_) {
    store::RunRow& row = current_->row();
    row.state_lost = true;
    row.exit_code = ended.exit_code;
    row.signal = ended.signal;
    row.limits_hit = ended.limits_hit;
    row.failure = ended.failure;
    finish(verdict, exec_->output().end(agent::Stream::kSpeech));
  }
  bool ended_by_platform = ended.verdict == verdict_name(Verdict::kPlatformError);
  bool is_gone = ended.verdict == verdict_name(Verdict::kSandboxGone);
  bool was_told = killed_for_ == Verdict::kKilled;
  exec_.reset();
  interpreter_.clear();
  killed_for_.reset();
  timer_ = {};
  // One that never began is not to blame: its stream broke too early.
  bool again = ended_by_platform && ++failed_starts_ <= kMaxFailedStarts;
  phase_ = was_ready || was_told || again ? Phase::kNone : Phase::kFailed;
  if (is_gone) close(Verdict::kSandboxGone);
  if (phase_ == Phase::kFailed) fail_queue(Verdict::kPlatformError, failure_);
  changed_.notify_all();
}

SteadyTime Context::next_check() const { return held_since_ ? SteadyTime::max() : timer_.next(); }

void Context::check_time() {
  if (!exec_ || held_since_) return;
  SteadyTime time = now();
  auto signal = timer_.due(time);
  if (!signal) return;
  // Tried again for as long as no stream is up.
  auto sent = execs_.control().signal(*exec_, *signal);
  timer_.set_sent(*signal, sent.ok(), time);
}

void Context::hold() {
  if (!held_since_) held_since_ = now();
  poke();
}

void Context::go_on(uint64_t frozen_ms) {
  if (!held_since_) return;
  auto frozen = now() - *std::exchange(held_since_, std::nullopt);
  timer_.shift(frozen);
  if (begun_at_) *begun_at_ += frozen;
  if (current_) {
    current_->row().frozen_ms += frozen_ms;
    store(current_->row());
  }
  poke();
}

void Context::kill(Verdict verdict) {
  if (!exec_ || killed_for_) return;
  killed_for_ = verdict;
  timer_.kill(now());
  check_time();
}

Task<Result<void>> Context::wait_ready() {
  while (phase_ == Phase::kNone || phase_ == Phase::kStarting) {
    if (closed_) co_return closed();
    bool changed = co_await changed_.wait_until(SteadyTime::max());
    if (!changed) co_return Error(Code::kCancelled, "the caller has gone");
  }
  if (phase_ == Phase::kReady) co_return Result<void>();
  co_return Error(Code::kUnavailable, "the interpreter does not start: " + failure_);
}

Task<Result<std::shared_ptr<ContextRun>>> Context::submit(RunRequest request) {
  if (closed_) co_return closed();
  if (queue_.size() >= kMaxQueuedRuns)
    co_return Error(Code::kExhausted, "the context has its full number of waiting runs")
        .with_reason("too_many_runs");
  store::RunRow row{.sandbox = row_.sandbox, .tenant = row_.tenant, .context = row_.id};
  row.number = row_.next_run++;
  row.code = std::move(request.code);
  row.environment = joined_variables(request.environment);
  row.timeout_ms = request.timeout_ms;
  row.created_at_ms = to_milliseconds(services_.clock.wall_now());
  row.sequence = services_.ledger.draw();
  auto run = std::make_shared<ContextRun>(services_.executor, std::move(row), nullptr);
  bool at_once = exec_ && queue_.empty() && can_begin();
  auto self = shared_from_this();
  std::shared_ptr<void> sandbox = sandbox_.lock();
  if (at_once) set_begun(*run);
  if (at_once) beginning_ = run;
  auto insert = [row = run->row(), key = request.idempotency_key](store::Catalog& catalog) {
    return key ? catalog.idempotency().insert_run(*key, row) : catalog.contexts().insert_run(row);
  };
  auto stored = co_await services_.ledger.run(insert);
  if (!stored) {
    if (at_once) beginning_.reset();
    co_return std::move(stored).error();
  }
  if (at_once) {
    send(run);
  } else {
    queue_.push_back(run);
    poke();
  }
  if (closed_) close(Verdict::kKilled);
  co_return run;
}

std::shared_ptr<ContextRun> Context::find_open(uint32_t number) const {
  if (current_ && current_->row().number == number) return current_;
  if (beginning_ && beginning_->row().number == number) return beginning_;
  for (const auto& run : queue_)
    if (run->row().number == number) return run;
  return nullptr;
}

Task<std::optional<std::string>> Context::complete(std::string code) {
  if (!exec_ || is_busy() || !can_begin() || row_.language == "bash") co_return std::nullopt;
  auto self = shared_from_this();
  completion_.reset();
  std::vector<std::string_view> fields{"complete", "0", code};
  // Without a row: should atolld die, nobody waits for the answer.
  auto delivery =
      deliver(sandbox_.lock(), execs_.control(), exec_, speech_line(fields), exec_->input().taken);
  // detached: owns the message, and ends with the exec or when all is sent
  spawn(services_.executor, std::move(delivery));
  SteadyTime deadline = now() + kCompletionTime;
  while (!completion_ && exec_) {
    bool changed = co_await changed_.wait_until(deadline);
    if (!changed) co_return std::nullopt;
  }
  co_return std::exchange(completion_, std::nullopt);
}

bool Context::interrupt() {
  if (!current_ || !exec_) return false;
  timer_.interrupt();
  poke();
  return true;
}

void Context::restart() {
  fail_queue(Verdict::kKilled, "");
  if (phase_ == Phase::kFailed) phase_ = Phase::kNone;
  kill(Verdict::kKilled);
  poke();
}

void Context::close(Verdict verdict) {
  closed_ = true;
  kill(verdict);
  if (current_) {
    current_->row().state_lost = true;
    uint64_t said = current_->exec() ? current_->exec()->output().end(agent::Stream::kSpeech) : 0;
    finish(verdict, said);
  }
  fail_queue(verdict, "");
  poke();
}

}  // namespace atl::sandbox
