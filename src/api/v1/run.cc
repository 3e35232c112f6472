#include "api/v1/run.h"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include "api/base64.h"
#include "api/json_reply.h"
#include "api/v1/artifacts.h"
#include "api/v1/exec_json.h"
#include "api/v1/execs.h"
#include "api/v1/run_request.h"
#include "async/spawn.h"
#include "base/file.h"
#include "base/log.h"
#include "sandbox/files.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::Exec;
using sandbox::Sandbox;
using sandbox::Sandboxes;

namespace {

constexpr uint64_t kMaxInlineArtifactBytes = 64 * 1024;
constexpr uint64_t kMaxInlineArtifactsBytes = 1024 * 1024;  // together

// Removes the sandbox of a run that came to no answer, also when its client has gone.
class Doomed {
 public:
  Doomed(Sandboxes& sandboxes, std::shared_ptr<Sandbox> sandbox)
      : sandboxes_(sandboxes), sandbox_(std::move(sandbox)) {}
  ~Doomed() {
    if (!sandbox_) return;
    // detached: owned by the Sandboxes, whose sweep finishes what it begins
    spawn(sandboxes_.services().executor, remove(sandboxes_, sandbox_));
  }
  Doomed(const Doomed&) = delete;
  Doomed& operator=(const Doomed&) = delete;
  void dismiss() { sandbox_.reset(); }

 private:
  static Task<void> remove(Sandboxes& sandboxes, std::shared_ptr<Sandbox> sandbox) {
    auto removed = co_await sandboxes.remove(sandbox->row().tenant, sandbox->id());
    if (!removed) log_warning("left for the sweep", {removed.error()});
  }

  Sandboxes& sandboxes_;
  std::shared_ptr<Sandbox> sandbox_;
};

http::Task<Result<void>> write_files(std::shared_ptr<Sandbox> sandbox, RunRequest& run) {
  sandbox::Files files(sandbox, run.user);
  for (RunFile& file : run.files) {
    sandbox::WriteFile request;
    request.path = file.path;
    ATOLL_CO_TRY(std::unique_ptr<sandbox::FileWriter> writer, co_await files.write(request));
    ATOLL_CO_TRY_VOID(co_await writer->write(file.bytes));
    ATOLL_CO_TRY_VOID(co_await writer->finish());
  }
  co_return Result<void>();
}

// Runs one exec to its end; null when the client went away first.
http::Task<Result<std::shared_ptr<Exec>>> run_exec(Call& call, std::shared_ptr<Sandbox> sandbox,
                                                   ExecCall parsed) {
  ATOLL_CO_TRY(std::shared_ptr<Exec> exec,
               co_await sandbox->start_exec(std::move(parsed.request), parsed.description));
  auto watch = call.exchange.watch_peer();
  if (watch.gone()) co_return std::shared_ptr<Exec>();
  SteadyTime never = SteadyTime::max();
  bool ended = co_await exec->wait_ended(never);
  // Also when both happened: what is left to do is then not for the client.
  if (!ended || watch.gone()) co_return std::shared_ptr<Exec>();
  co_return exec;
}

struct Calls {
  std::optional<ExecCall> compile;
  ExecCall program;
};

Result<Calls> parse_calls(const RunRequest& run, const Sandbox& sandbox) {
  Calls calls;
  ATOLL_TRY(calls.program, parse_exec(json::serialize(run.exec), sandbox));
  if (!run.compile) return calls;
  auto compile = parse_exec(json::serialize(*run.compile), sandbox);
  if (compile) {
    calls.compile = std::move(*compile);
    return calls;
  }
  std::string field = "compile." + compile.error().field();
  return std::move(compile).error().with_field(field);
}

// How far a run has come.
struct Phases {
  std::shared_ptr<Exec> compile;  // null: nothing was to be compiled
  std::shared_ptr<Exec> program;  // null: what was compiled before it did not succeed

  const Exec& last() const { return program ? *program : *compile; }
};

// Nothing when the client went away first.
http::Task<Result<std::optional<Phases>>> run_phases(Call& call, Sandboxes& sandboxes,
                                                     std::shared_ptr<Sandbox> sandbox, Calls calls,
                                                     const RunRequest& run) {
  std::optional<Phases> phases(std::in_place);
  if (calls.compile) {
    ATOLL_CO_TRY(phases->compile, co_await run_exec(call, sandbox, std::move(*calls.compile)));
    if (!phases->compile) co_return std::optional<Phases>();
    if (phases->compile->row().verdict != verdict_name(sandbox::Verdict::kOk)) co_return phases;
  }
  if (run.after_compile) {
    sandbox::ChangeSandbox own_limits = *run.after_compile;
    ATOLL_CO_TRY_VOID(co_await sandboxes.change(sandbox, own_limits));
  }
  ATOLL_CO_TRY(phases->program, co_await run_exec(call, sandbox, std::move(calls.program)));
  if (!phases->program) co_return std::optional<Phases>();
  co_return phases;
}

std::string percent_encoded(std::string_view name) {
  std::string text;
  for (unsigned char c : name) {
    bool plain = isalnum(c) || c == '/' || c == '-' || c == '_' || c == '.' || c == '~';
    text += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return text;
}

// What was kept when the sandbox was removed, small ones with their bytes.
Result<json::array> artifacts_json(SandboxId id, store::TenantId tenant,
                                   sandbox::Services& services) {
  int64_t now_ms = services.expiry_time.now_ms();
  ATOLL_TRY(auto kept, services.artifacts.list(tenant, id, now_ms));
  json::array items;
  uint64_t inlined = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    json::object item = artifact_json(kept[i]);
    bool fits = kept[i].size <= kMaxInlineArtifactBytes &&
                inlined + kept[i].size <= kMaxInlineArtifactsBytes;
    if (fits) {
      ATOLL_TRY(Fd file, services.artifacts.open_bytes(id, i));
      ATOLL_TRY(std::string bytes, read_all(file.get(), kMaxInlineArtifactBytes));
      inlined += bytes.size();
      item["base64"] = to_base64(bytes);
    } else {
      item["url"] = "/v1/sandboxes/" + id.string() + "/artifacts/" + percent_encoded(kept[i].name);
    }
    items.push_back(std::move(item));
  }
  return items;
}

double ms_since(SteadyTime start) {
  auto elapsed = std::chrono::steady_clock::now() - start;
  auto us = std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count();
  return to_ms(static_cast<uint64_t>(us));
}

// The exec that the run ended with, and what was compiled before it.
Result<json::object> phases_json(const Phases& phases) {
  ATOLL_TRY(json::object object, exec_json(phases.last()));
  object["phase"] = phases.program ? "run" : "compile";
  if (!phases.compile) return object;
  const store::ExecRow& row = phases.compile->row();
  ATOLL_TRY(json::object compile, exec_json(*phases.compile));
  for (const char* name : {"id", "state", "request", "pid", "created_at", "timings"})
    compile.erase(name);
  object["compile"] = std::move(compile);
  json::object& timings = object["timings"].get_object();
  if (!phases.program) {
    object["verdict"] = sandbox::verdict_after_compile(row.verdict, row.limits_hit);
    // Nothing of the program itself has taken any time.
    for (const char* name : {"start_ms", "run_ms", "drain_ms"}) timings[name] = 0;
  }
  timings["compile_ms"] = to_ms(row.wall_us);
  return object;
}

http::Task<Reply> run_once(Call& call, Sandboxes& sandboxes) {
  SteadyTime begin = std::chrono::steady_clock::now();
  ATOLL_CO_TRY(RunRequest run, parse_run(call.body, sandboxes.templates(), call.tenant));
  ATOLL_CO_TRY(sandbox::Created created, co_await sandboxes.create(call.tenant, run.create));
  std::shared_ptr<Sandbox> sandbox = created.sandbox;
  Doomed doomed(sandboxes, sandbox);
  double create_ms = ms_since(begin);
  ATOLL_CO_TRY(Calls calls, parse_calls(run, *sandbox));
  SteadyTime phase = std::chrono::steady_clock::now();
  ATOLL_CO_TRY_VOID(co_await write_files(sandbox, run));
  double files_ms = ms_since(phase);
  ATOLL_CO_TRY(std::optional<Phases> phases,
               co_await run_phases(call, sandboxes, sandbox, std::move(calls), run));
  if (!phases) co_return std::optional<http::Response>();
  ATOLL_CO_TRY(json::object object, phases_json(*phases));
  phase = std::chrono::steady_clock::now();
  doomed.dismiss();
  co_await sandboxes.retire(sandbox);
  object["sandbox_id"] = sandbox->id().view();
  ATOLL_CO_TRY(object["artifacts"],
               artifacts_json(sandbox->id(), call.tenant, sandboxes.services()));
  json::object& timings = object["timings"].get_object();
  timings["create_ms"] = create_ms;
  timings["from_pool"] = created.timings.from_pool;
  timings["from_zygote"] = created.timings.from_zygote;
  timings["files_ms"] = files_ms;
  timings["remove_ms"] = ms_since(phase);
  timings["total_ms"] = ms_since(begin);
  co_return std::optional(json_reply(200, object));
}

}  // namespace

void add_run_route(Router& router, Sandboxes& sandboxes) {
  auto action = [&sandboxes](Call& call) { return run_once(call, sandboxes); };
  router.add({.method = http::Method::kPost,
              .pattern = "/v1/run",
              .action = action,
              .effect = Route::Effect::kCreates,
              .time = Route::Time::kLong});
}

}  // namespace atl::api::v1
