#include "sandbox/exec_table.h"

#include <algorithm>
#include <set>

#include "agent/frame.h"
#include "base/crash_point.h"
#include "base/log.h"
#include "sandbox/limits.h"

namespace atl::sandbox {

// How often an exec is looked at that has little time left while its sandbox stands still.
constexpr std::chrono::seconds kStillPause{1};

namespace {

agent::Start start_of(ExecRequest request) {
  agent::Start start{.arguments = std::move(request.arguments),
                     .environment = std::move(request.environment),
                     .directory = std::move(request.directory),
                     .user = request.user,
                     .timeout_ms = request.timeout_ms,
                     .output_limit_bytes = request.output_limit_bytes,
                     .on_output_limit = request.on_output_limit,
                     .cpu_time_ms = request.cpu_time_ms,
                     .open_files = request.open_files,
                     .input = std::move(request.input),
                     .input_mode = request.input_mode,
                     .terminal = request.terminal};
  if (request.context) start.control = agent::ControlMode::kSpeaks;
  return start;
}

// As the agent is told, without the head of the frame.
std::string record_of(const ExecRequest& request) {
  return agent::encode(0, start_of(request)).substr(agent::kHeaderBytes);
}

}  // namespace

ExecTable::ExecTable(Services& services, const store::SandboxRow& row, const OwnTime& time,
                     std::function<void()> break_talk)
    : services_(services),
      sandbox_(row.id),
      tenant_(row.tenant),
      time_(time),
      break_talk_(std::move(break_talk)),
      next_number_(row.next_exec),
      saw_outputs_(row.state != "creating") {}

Task<Result<std::shared_ptr<Exec>>> ExecTable::create(ExecRequest request,
                                                      std::string description) {
  if (live_.size() >= agent::kMaxExecs)
    co_return Error(Code::kExhausted, "the sandbox has its full number of running execs")
        .with_reason("too_many_execs");
  if (request.context && agent_version_ < agent::kControlledSince)
    co_return Error(Code::kConflict, "the sandbox is of a release that had no contexts");
  std::optional<WaitingProgram> waiting = control_.take_waiting(request, next_number_);
  auto id = ExecId::from_number(next_number_);
  if (!id)
    co_return Error(Code::kExhausted, "the sandbox has had too many execs")
        .with_reason("too_many_execs");
  ++next_number_;
  store::ExecRow row{.sandbox = sandbox_, .tenant = tenant_, .id = *id};
  row.request = std::move(description);
  row.created_at_ms = to_milliseconds(services_.clock.wall_now());
  row.sequence = services_.ledger.draw();
  auto key = request.idempotency_key;
  auto context = request.context;
  if (context) context->exec = id->number();
  store::ExecRow stored_row = row;
  // What an interpreter was told is in the rows of its runs.
  if (!context) stored_row.record = record_of(request);
  auto exec = begin(row, std::move(request), std::move(waiting));
  // While the agent starts it. A crash before this is done leaves an exec that no row knows, which
  // the next welcome ends.
  auto insert = [row = std::move(stored_row), key,
                 context](store::Catalog& catalog) -> Result<void> {
    // Before the exec's own row: an interpreter that no context knows would run for ever.
    if (context) ATOLL_TRY_VOID(catalog.contexts().set_exec(*context, context->exec));
    return key ? catalog.idempotency().insert_exec(*key, row) : catalog.execs().insert(row);
  };
  crash_point("exec.sent");
  auto stored = co_await services_.ledger.run(insert);
  crash_point("exec.row");
  if (stored) co_return exec;
  if (!exec->ended())
    exec->set_ended(
        ended_row(row, Verdict::kPlatformError, "it was not stored", kept_offsets(*exec)));
  leave(*exec);
  break_talk_();
  co_return std::move(stored).error();
}

std::shared_ptr<Exec> ExecTable::begin(store::ExecRow row, ExecRequest request,
                                       std::optional<WaitingProgram> waiting) {
  ExecId id = row.id;
  ExecKind kind = request.context ? ExecKind::kInterpreter : ExecKind::kProgram;
  auto exec = std::make_shared<Exec>(services_.executor, std::move(row),
                                     ExecOutput(services_.outputs, sandbox_, id, kind),
                                     request.output_limit_bytes);
  exec->input() = ExecInput{.taken = request.input.size(),
                            .known = true,
                            .closed = request.input_mode == agent::InputMode::kEnds};
  Entry& entry = enter(exec, std::chrono::milliseconds(request.timeout_ms));
  if (waiting) {
    exec->set_started(waiting->pid);
    control_.begin(*waiting, request, *exec);
    return exec;
  }
  entry.start_frame = agent::encode(id.number(), start_of(std::move(request)));
  control_.start(entry.start_frame);
  return exec;
}

Result<void> ExecTable::adopt(store::ExecRow row, uint64_t output_limit_bytes, ExecKind kind) {
  ExecOutput output(services_.outputs, sandbox_, row.id, kind);
  ATOLL_TRY_VOID(output.adopt());
  auto exec = std::make_shared<Exec>(services_.executor, std::move(row), std::move(output),
                                     output_limit_bytes);
  // Its own limit is known to the agent alone.
  enter(std::move(exec), std::chrono::milliseconds(kMaxTimeoutMs));
  return {};
}

ExecTable::Entry& ExecTable::enter(std::shared_ptr<Exec> exec, std::chrono::milliseconds patience) {
  auto timer = std::make_unique<boost::asio::steady_timer>(services_.executor);
  // An interpreter has no time of its own; its context ends it.
  bool is_program = exec->output().kind() == ExecKind::kProgram;
  if (is_program) await_end(exec, *timer, time_.now() + patience + services_.silence_grace);
  uint32_t number = exec->id().number();
  auto [entry, is_new] = live_.emplace(number, Entry{std::move(exec), std::move(timer)});
  ATOLL_CHECK(is_new);
  return entry->second;
}

void ExecTable::await_end(std::shared_ptr<Exec> exec, boost::asio::steady_timer& patience,
                          SteadyTime deadline) {
  SteadyTime::duration left = deadline - time_.now();
  if (time_.is_held()) left = std::max<SteadyTime::duration>(left, kStillPause);
  patience.expires_after(left);
  auto expired = [this, weak = std::weak_ptr(exec), &patience,
                  deadline](const boost::system::error_code& error) {
    // All have ended before the table goes.
    std::shared_ptr<Exec> silent = weak.lock();
    if (error || !silent || silent->ended()) return;
    // The sandbox was paused meanwhile, or is.
    if (time_.now() < deadline) return await_end(silent, patience, deadline);
    silence_ = "the agent did not end " + silent->id().string() + " in its time";
    break_talk_();
  };
  patience.async_wait(std::move(expired));
}

size_t ExecTable::running() const {
  auto runs = [](const auto& entry) {
    const Exec& exec = *entry.second.exec;
    return !exec.ended() && exec.output().kind() == ExecKind::kProgram;
  };
  return static_cast<size_t>(std::count_if(live_.begin(), live_.end(), runs));
}

// One that has ended is live until its row is stored.
bool ExecTable::have_no_outputs() const {
  auto ended = [](const auto& entry) { return entry.second.exec->ended(); };
  return !saw_outputs_ && std::all_of(live_.begin(), live_.end(), ended);
}

std::shared_ptr<Exec> ExecTable::find_live(ExecId id) const {
  auto found = live_.find(id.number());
  return found == live_.end() ? nullptr : found->second.exec;
}

Task<Result<std::shared_ptr<Exec>>> ExecTable::open(ExecId id) {
  if (auto exec = find_live(id)) co_return exec;
  ATOLL_CO_TRY(std::optional<store::ExecRow> row, co_await find(id));
  if (!row) co_return std::shared_ptr<Exec>();
  ExecOutput output(services_.outputs, sandbox_, id);
  ATOLL_CO_TRY_VOID(output.adopt());
  co_return std::make_shared<Exec>(services_.executor, std::move(*row), std::move(output), 0);
}

Task<Result<std::optional<store::ExecRow>>> ExecTable::find(ExecId id) {
  if (auto exec = find_live(id)) co_return std::optional(exec->row());
  auto look_up = [tenant = tenant_, sandbox = sandbox_, id](store::Catalog& catalog) {
    return catalog.execs().find(tenant, sandbox, id);
  };
  co_return co_await services_.ledger.run(look_up);
}

Task<Result<std::vector<store::ExecRow>>> ExecTable::list(std::optional<ExecId> after,
                                                          size_t limit) {
  auto read = [tenant = tenant_, sandbox = sandbox_, after, limit](store::Catalog& catalog) {
    return catalog.execs().list(tenant, sandbox, after, limit);
  };
  co_return co_await services_.ledger.run(read);
}

ExecTable::Entry* ExecTable::entry_of(uint32_t number) {
  auto found = live_.find(number);
  return found == live_.end() ? nullptr : &found->second;
}

Task<Result<bool>> ExecTable::has_ended_at(agent::ExecOffsets produced) {
  auto id = ExecId::from_number(produced.exec);
  if (!id) co_return Error(Code::kCorrupt, "hello names an impossible exec");
  auto look_up = [tenant = tenant_, sandbox = sandbox_, exec = *id](store::Catalog& catalog) {
    return catalog.execs().find(tenant, sandbox, exec);
  };
  ATOLL_CO_TRY(auto row, co_await services_.ledger.run(look_up));
  co_return row && row->state == "ended" && row->stdout_bytes == produced.stdout_offset &&
      row->stderr_bytes == produced.stderr_offset;
}

Task<Result<agent::Welcome>> ExecTable::welcome(agent::Hello hello) {
  owed_.clear();  // the welcome says it
  agent_version_ = hello.version;
  agent::Welcome welcome{hello.version, {}};
  std::set<uint32_t> named;
  for (agent::ExecOffsets produced : hello.execs) {
    named.insert(produced.exec);
    // Also those that no row knows, because atolld crashed too early: a number is used once.
    if (ExecId::from_number(produced.exec))
      next_number_ = std::max(next_number_, produced.exec + 1);
    if (Entry* entry = entry_of(produced.exec)) {
      welcome.execs.push_back(entry->exec->offsets());
      continue;
    }
    // Its exit is stored but the acknowledgement was lost: let the agent repeat it.
    ATOLL_CO_TRY(bool ended, co_await has_ended_at(produced));
    if (ended) welcome.execs.push_back(produced);
  }
  std::vector<std::shared_ptr<Exec>> lost;
  for (const auto& [number, entry] : live_)
    if (!named.contains(number) && entry.start_frame.empty()) lost.push_back(entry.exec);
  for (std::shared_ptr<Exec> exec : lost) {
    store::ExecRow row = ended_row(exec->row(), Verdict::kPlatformError,
                                   "the agent does not know this exec", kept_offsets(*exec));
    ATOLL_CO_TRY_VOID(co_await finish(exec, row));
  }
  co_return welcome;
}

void ExecTable::send_unconfirmed(isolate::AgentLink& link) const {
  for (const auto& [number, entry] : live_)
    if (!entry.start_frame.empty()) link.send(entry.start_frame);
}

Task<Result<void>> ExecTable::handle(agent::Frame frame, isolate::AgentLink& link) {
  Result<void> done;
  if (frame.type == agent::FrameType::kOutput) {
    done = handle_output(frame);
  } else {
    // Before an exit is: the agent knows no stream of an exec that it may forget.
    if (!owed_.empty()) acknowledge_output(link);
    done = co_await carry_out(frame, link);
  }
  // One acknowledgement for all that has come at once: each is a message that wakes the agent.
  if (!owed_.empty() && !link.has_buffered_frame()) acknowledge_output(link);
  co_return done;
}

void ExecTable::acknowledge_output(isolate::AgentLink& link) {
  std::string frames;
  for (const auto& [stream, end] : owed_)
    frames += agent::encode(stream.first, agent::Acknowledge{stream.second, end});
  owed_.clear();
  link.send(std::move(frames));
  crash_point("exec.acknowledged");
}

Task<Result<void>> ExecTable::carry_out(agent::Frame frame, isolate::AgentLink& link) {
  switch (frame.type) {
    case agent::FrameType::kInputTaken:
      co_return handle_input_taken(frame);
    case agent::FrameType::kExit:
      co_return co_await handle_exit(frame, link);
    case agent::FrameType::kStartFailed:
      co_return co_await handle_start_failed(frame, link);
    case agent::FrameType::kStarted: {
      ATOLL_CO_TRY(uint32_t pid, agent::decode_started(frame.payload));
      Entry* entry = entry_of(frame.number);
      if (!entry) co_return Result<void>();
      entry->start_frame = {};
      entry->exec->set_started(pid);
      co_return Result<void>();
    }
    default:
      co_return Error(Code::kCorrupt, "unexpected frame of the agent");
  }
}

Result<void> ExecTable::handle_output(const agent::Frame& frame) {
  ATOLL_TRY(agent::Output output, agent::decode_output(frame.payload));
  Entry* entry = entry_of(frame.number);
  if (!entry) return Error(Code::kCorrupt, "output of an exec that does not run");
  bool dropped = entry->exec->output().drops();
  ATOLL_TRY(uint64_t end, entry->exec->append(output));
  crash_point("exec.output");
  if (!dropped && entry->exec->output().drops()) stop_output(*entry->exec);
  owed_[{frame.number, output.stream}] = end;
  return {};
}

// What is on the way is dropped here; from then on the agent cuts, as beyond a limit of output.
void ExecTable::stop_output(const Exec& exec) {
  log_warning("output is dropped, for want of room",
              {{"sandbox", sandbox_.view()}, {"exec", exec.id().string()}});
  if (agent_version_ < agent::kControlledSince) return;
  control_.grant(exec, {0, 0});
}

Result<void> ExecTable::handle_input_taken(const agent::Frame& frame) {
  ATOLL_TRY(agent::InputTaken taken, agent::decode_input_taken(frame.payload));
  crash_point("input.taken");
  Entry* entry = entry_of(frame.number);
  return entry ? entry->exec->set_taken(taken) : Result<void>();
}

Task<Result<void>> ExecTable::handle_exit(agent::Frame frame, isolate::AgentLink& link) {
  ATOLL_CO_TRY(agent::Exit exit, agent::decode_exit(frame.payload));
  uint32_t number = frame.number;
  if (Entry* entry = entry_of(number)) {
    std::shared_ptr<Exec> exec = entry->exec;
    ATOLL_CO_TRY_VOID(exec->check_exit(exit));
    saw_outputs_ = saw_outputs_ || exit.may_have_outputs;
    crash_point("exec.exit");
    store::ExecRow row = ended_row(*exec, exit);
    ATOLL_CO_TRY_VOID(co_await finish(exec, row));
    crash_point("exec.finished");
  }
  control_.forget(number);
  link.send(agent::encode_exit_acknowledge(number));
  co_return Result<void>();
}

store::ExecRow ExecTable::unstarted_row(const Exec& exec, const agent::StartFailed& failed) const {
  if (failed.operation == agent::kNoRoomForProcesses) {
    store::ExecRow row =
        ended_row(exec.row(), Verdict::kPidsLimit, "as many processes run as the sandbox may have",
                  kept_offsets(exec));
    row.limits_hit = bit(agent::LimitBit::kPids);
    return row;
  }
  Error cause = Error::from_errno(failed.operation, failed.system_errno);
  log_warning("exec could not be started", {{"sandbox", sandbox_.view()}, cause});
  return ended_row(exec.row(), Verdict::kPlatformError, cause.message(), kept_offsets(exec));
}

Task<Result<void>> ExecTable::handle_start_failed(agent::Frame frame, isolate::AgentLink& link) {
  ATOLL_CO_TRY(agent::StartFailed failed, agent::decode_start_failed(frame.payload));
  uint32_t number = frame.number;
  if (Entry* entry = entry_of(number)) {
    std::shared_ptr<Exec> exec = entry->exec;
    ATOLL_CO_TRY_VOID(co_await finish(exec, unstarted_row(*exec, failed)));
  }
  link.send(agent::encode_exit_acknowledge(number));
  co_return Result<void>();
}

Task<Result<void>> ExecTable::finish(std::shared_ptr<Exec> exec, store::ExecRow row) {
  // Whoever waits is told at once: until the row is stored the exec stays in the table and the
  // agent repeats the exit, so a crash loses nothing that was told.
  if (!exec->ended()) {
    count(row);
    exec->set_ended(std::move(row));
    last_end_ = services_.clock.steady_now();
  }
  auto store_row = [ended = exec->row()](store::Catalog& catalog) {
    return catalog.execs().finish(ended);
  };
  auto stored = co_await services_.ledger.run_to_free(store_row);
  // kConflict: it was stored before, and the first verdict stays.
  // kNotFound: its row could not be stored either; create() is about to end it.
  if (!stored && stored.error().code() == Code::kNotFound)
    co_return Error(Code::kUnavailable, "the exec was not stored");
  if (!stored && stored.error().code() != Code::kConflict) co_return std::move(stored).error();
  leave(*exec);
  co_return Result<void>();
}

void ExecTable::count(const store::ExecRow& ended) {
  ++services_.tally.execs[ended.verdict];
  if (ended.exit_code || ended.signal)
    services_.tally.exec_start_time.add(std::chrono::microseconds(ended.start_us));
}

void ExecTable::leave(const Exec& exec) {
  live_.erase(exec.id().number());
  last_end_ = services_.clock.steady_now();
}

Task<void> ExecTable::end_all(Verdict verdict, std::string failure) {
  while (!live_.empty()) {
    std::shared_ptr<Exec> exec = live_.begin()->second.exec;
    store::ExecRow row = ended_row(exec->row(), verdict, failure, kept_offsets(*exec));
    if (verdict == Verdict::kOom) row.limits_hit = bit(agent::LimitBit::kMemory);
    auto finished = co_await finish(exec, row);
    if (finished) continue;
    // Whoever waits must not wait for ever because a row could not be stored.
    log_error("verdict could not be stored", {{"sandbox", sandbox_.view()}, finished.error()});
    leave(*exec);
  }
}

}  // namespace atl::sandbox
