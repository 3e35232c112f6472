#include "sandbox/replay.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "agent/frame.h"
#include "agent/protocol.h"
#include "base/log.h"
#include "sandbox/context_language.h"
#include "sandbox/context_start.h"
#include "sandbox/fork.h"
#include "sandbox/output_comparison.h"

namespace atl::sandbox {

namespace {

Error not_recorded(const RecordedRun& run) {
  std::string_view reason = run.exec ? "exec_not_found" : "run_not_found";
  return Error(Code::kNotFound, "nothing is recorded of " + run.string())
      .with_reason(reason)
      .with_field("runs");
}

ExecRequest request_of(agent::Start start) {
  ExecRequest request;
  request.arguments = std::move(start.arguments);
  request.environment = std::move(start.environment);
  request.directory = std::move(start.directory);
  request.user = std::move(start.user);
  request.input = std::move(start.input);
  request.input_mode = start.input_mode;
  request.terminal = start.terminal;
  request.timeout_ms = start.timeout_ms;
  request.output_limit_bytes = start.output_limit_bytes;
  request.on_output_limit = start.on_output_limit;
  request.cpu_time_ms = start.cpu_time_ms;
  request.open_files = start.open_files;
  return request;
}

std::string_view why_not(const std::string& state, const std::string& verdict) {
  if (state != "ended") return "it has not ended";
  if (verdict == "killed") return "it was ended from outside";
  if (verdict == "sandbox_gone") return "it ended with its isolate";
  return verdict == "platform_error" ? "it failed for a reason outside of it" : "";
}

// One replay: the sandbox that was, and the one in which it is done again.
class Replay {
 public:
  Replay(std::shared_ptr<Sandbox> before, std::shared_ptr<Sandbox> again, Ledger& ledger)
      : before_(std::move(before)), again_(std::move(again)), ledger_(ledger) {}

  Task<Result<void>> run(RecordedRun recorded) {
    auto done = recorded.exec ? run_exec(recorded) : run_code(recorded);
    co_return co_await std::move(done);
  }
  Replayed take() { return std::move(replayed_); }
  bool differs() const { return replayed_.difference.has_value(); }

 private:
  Task<Result<void>> run_exec(RecordedRun recorded) {
    ExecId id = *recorded.exec;
    ATOLL_CO_TRY(std::shared_ptr<Exec> was, co_await before_->execs().open(id));
    if (!was) co_return not_recorded(recorded);
    auto read = [tenant = before_->row().tenant, sandbox = before_->id(),
                 id](store::Catalog& catalog) {
      return catalog.execs().find_record(tenant, sandbox, id);
    };
    ATOLL_CO_TRY(std::optional<std::string> record, co_await ledger_.run(read));
    if (!record) co_return Result<void>();  // an interpreter, whose runs are done again
    std::string_view why = why_not(was->row().state, was->row().verdict);
    ATOLL_CO_TRY(agent::Start start, agent::decode_start(*record));
    if (why.empty() && start.input_mode == agent::InputMode::kOpen) why = "its input was streamed";
    if (!why.empty()) {
      replayed_.not_replayed.push_back({recorded, why});
      co_return Result<void>();
    }
    ExecRequest request = request_of(std::move(start));
    std::string description = was->row().request;
    ATOLL_CO_TRY(auto exec, co_await again_->start_exec(std::move(request), description));
    while (!exec->ended()) (void)co_await exec->wait_ended();
    const store::ExecRow& is = exec->row();
    replayed_.runs.push_back({recorded, is.verdict, is.exit_code});
    compare_end(recorded, {was->row().verdict, was->row().exit_code, was->row().signal},
                {is.verdict, is.exit_code, is.signal});
    for (agent::Stream stream : {agent::Stream::kStdout, agent::Stream::kStderr}) {
      if (differs()) break;
      ATOLL_CO_TRY(auto found,
                   compare_streams(whole_stream(*was, stream), whole_stream(*exec, stream)));
      note(recorded, stream, std::move(found));
    }
    co_return Result<void>();
  }

  Task<Result<void>> run_code(RecordedRun recorded) {
    std::shared_ptr<Context> context = before_->contexts().find(*recorded.context);
    if (!context) co_return not_recorded(recorded);
    auto& contexts = before_->contexts();
    ATOLL_CO_TRY(auto was, co_await contexts.find_run(context, recorded.number));
    if (!was) co_return not_recorded(recorded);
    std::string_view why = why_not(was->row().state, was->row().verdict);
    if (!why.empty()) {
      replayed_.not_replayed.push_back({recorded, why});
      co_return Result<void>();
    }
    if (!was->exec()) co_return not_recorded(recorded);
    ATOLL_CO_TRY(std::shared_ptr<Context> twin, co_await twin_of_context(context));
    RunRequest request{.code = was->row().code,
                       .environment = split_variables(was->row().environment),
                       .timeout_ms = was->row().timeout_ms};
    ATOLL_CO_TRY(auto run, co_await start_run(again_, twin, std::move(request)));
    while (!run->ended()) (void)co_await run->wait_changed();
    const store::RunRow& is = run->row();
    replayed_.runs.push_back({recorded, is.verdict, is.exit_code});
    compare_end(recorded, {was->row().verdict, was->row().exit_code, was->row().signal},
                {is.verdict, is.exit_code, is.signal});
    for (agent::Stream stream : {agent::Stream::kStdout, agent::Stream::kStderr}) {
      if (differs() || !run->exec()) break;
      ATOLL_CO_TRY(auto found,
                   compare_streams(part_of_run(*was, stream), part_of_run(*run, stream)));
      note(recorded, stream, std::move(found));
    }
    if (differs()) co_return Result<void>();
    ATOLL_CO_TRY(auto results, compare_results(was, run));
    if (results)
      replayed_.difference = ReplayDifference{
          recorded, "result", 0, std::move(results->recorded), std::move(results->replayed), {}};
    co_return Result<void>();
  }

  // The context in the fresh sandbox that stands for one of the recorded: it knows nothing of what
  // was run before the snapshot.
  Task<Result<std::shared_ptr<Context>>> twin_of_context(std::shared_ptr<Context> context) {
    auto known = twins_.find(context->row().id);
    if (known != twins_.end()) co_return known->second;
    ContextRequest request = context_request_of(*context);
    ATOLL_CO_TRY(auto twin, co_await start_context(again_, std::move(request)));
    twins_.emplace(context->row().id, twin);
    co_return twin;
  }

  struct End {
    std::string verdict;
    std::optional<int> exit_code, signal;
  };
  void compare_end(const RecordedRun& run, const End& was, const End& is) {
    auto text = [](const std::optional<int>& number) {
      return number ? std::to_string(*number) : std::string("none");
    };
    if (was.verdict != is.verdict)
      replayed_.difference = {run, "verdict", 0, was.verdict, is.verdict, {}};
    else if (was.exit_code != is.exit_code)
      replayed_.difference = {run, "exit_code", 0, text(was.exit_code), text(is.exit_code), {}};
    else if (was.signal != is.signal)
      replayed_.difference = {run, "signal", 0, text(was.signal), text(is.signal), {}};
  }
  void note(const RecordedRun& run, agent::Stream stream, std::optional<OutputDifference> found) {
    if (!found) return;
    std::string_view name = stream == agent::Stream::kStdout ? "stdout" : "stderr";
    replayed_.difference = ReplayDifference{
        run, name, found->offset, std::move(found->recorded), std::move(found->replayed), {}};
  }

  std::shared_ptr<Sandbox> before_, again_;
  Ledger& ledger_;
  Replayed replayed_;
  std::map<ContextId, std::shared_ptr<Context>> twins_;
};

// From the files of the sandbox as they are to those of the replay.
Task<Result<std::optional<ReplayDifference>>> compare_files(Sandboxes& sandboxes,
                                                            Snapshots& snapshots,
                                                            std::shared_ptr<Sandbox> before,
                                                            std::shared_ptr<Sandbox> again) {
  store::TenantId tenant = before->row().tenant;
  CutSnapshot cut{.reason = "diff"};
  auto kept = co_await snapshots.cut(before, std::move(cut));
  if (!kept) co_return std::move(kept).error();
  SnapshotId was = kept->row.id;
  DiffRequest request{.from = was};
  request.live = again;
  request.limit = 1;
  auto diff = co_await make_diff(sandboxes, snapshots, tenant, request);
  auto removed = co_await snapshots.remove(tenant, was, store::Orphans::kAdopt);
  if (!removed) log_warning("a replay left its snapshot", {removed.error()});
  if (!diff) co_return std::move(diff).error();
  std::optional<ReplayDifference> found;
  if (!diff->changes.empty()) {
    found.emplace();
    found->in = "files";
    found->change = diff->changes.front();
  }
  co_return found;
}

Task<Result<Replayed>> replay_in(Sandboxes& sandboxes, Snapshots& snapshots,
                                 std::vector<std::shared_ptr<Sandbox>> both,
                                 const ReplayRequest& request, int64_t first) {
  Ledger& ledger = sandboxes.services().ledger;
  std::vector<RecordedRun> runs;
  if (request.runs) {
    runs = *request.runs;
  } else {
    ATOLL_CO_TRY(runs, co_await runs_since(ledger, both[0], first));
  }
  if (runs.size() > kMaxReplayedRuns)
    co_return Error(Code::kExhausted, "there are more than 1000 runs since the snapshot")
        .with_reason("too_many_runs");
  Replay replay(both[0], both[1], ledger);
  for (const RecordedRun& run : runs) {
    if (replay.differs()) break;
    ATOLL_CO_TRY_VOID(co_await replay.run(run));
  }
  Replayed replayed = replay.take();
  if (request.runs || replayed.difference) co_return replayed;
  ATOLL_CO_TRY(replayed.difference, co_await compare_files(sandboxes, snapshots, both[0], both[1]));
  replayed.files_compared = true;
  co_return replayed;
}

}  // namespace

std::optional<RecordedRun> RecordedRun::parse(std::string_view text) {
  RecordedRun run;
  size_t slash = text.find('/');
  if (slash == text.npos) {
    run.exec = ExecId::parse(text);
    return run.exec ? std::optional(run) : std::nullopt;
  }
  run.context = ContextId::parse(text.substr(0, slash));
  std::string_view number = text.substr(slash + 1);
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), run.number);
  bool whole = error == std::errc() && end == number.data() + number.size();
  return run.context && whole && run.number > 0 ? std::optional(run) : std::nullopt;
}

std::string RecordedRun::string() const {
  return exec ? exec->string() : context->string() + "/" + std::to_string(number);
}

Task<Result<std::vector<RecordedRun>>> runs_since(Ledger& ledger, std::shared_ptr<Sandbox> sandbox,
                                                  int64_t first) {
  std::vector<std::pair<int64_t, RecordedRun>> found;
  std::optional<ExecId> after;
  while (true) {
    ATOLL_CO_TRY(auto rows, co_await sandbox->execs().list(after, store::kMaxPageRows));
    for (const store::ExecRow& row : rows)
      if (row.sequence >= first) found.push_back({row.sequence, {.exec = row.id}});
    if (rows.size() < store::kMaxPageRows) break;
    after = rows.back().id;
  }
  auto read = [tenant = sandbox->row().tenant, id = sandbox->id(), first](store::Catalog& catalog) {
    return catalog.contexts().runs_since(tenant, id, first);
  };
  ATOLL_CO_TRY(auto runs, co_await ledger.run(read));
  for (const store::RunRow& row : runs)
    found.push_back({row.sequence, {.context = row.context, .number = row.number}});
  std::sort(found.begin(), found.end(),
            [](const auto& one, const auto& other) { return one.first < other.first; });
  std::vector<RecordedRun> ordered;
  for (auto& [sequence, run] : found) ordered.push_back(std::move(run));
  co_return ordered;
}

Task<Result<Replayed>> replay_runs(Sandboxes& sandboxes, Snapshots& snapshots,
                                   std::shared_ptr<Sandbox> sandbox, ReplayRequest request) {
  store::TenantId tenant = sandbox->row().tenant;
  Ledger& ledger = sandboxes.services().ledger;
  ATOLL_CO_TRY(auto from, co_await find_snapshot(ledger, tenant, request.from));
  CreateSandbox wanted = twin_request(sandbox->row(), request.from);
  wanted.checkpoint = "none";
  wanted.persistence = "ephemeral";
  wanted.ttl_ms = kReplayTtlMs;
  wanted.idle_ttl_ms = 0;
  wanted.on_ttl = "delete";
  ATOLL_CO_TRY(Created created, co_await sandboxes.create(tenant, std::move(wanted)));
  std::vector<std::shared_ptr<Sandbox>> both = {sandbox, created.sandbox};
  auto replayed = co_await replay_in(sandboxes, snapshots, both, request, from.cut_sequence);
  SandboxId again = created.sandbox->id();
  auto removed = co_await sandboxes.remove(tenant, again);
  if (!removed) log_warning("left for the sweep", {{"sandbox", again.view()}, removed.error()});
  co_return replayed;
}

}  // namespace atl::sandbox
