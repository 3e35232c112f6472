#include "sandbox/contexts.h"

#include <algorithm>

#include "async/spawn.h"
#include "sandbox/context_language.h"

namespace atl::sandbox {

namespace {

InterpreterLimits interpreter_limits(const Limits& limits) {
  return {.output_bytes = limits.output_bytes,
          .cpu_time_ms = limits.cpu_time_ms,
          .open_files = limits.wall.open_files};
}

}  // namespace

Contexts::Contexts(Services& services, ExecTable& execs, const store::SandboxRow& row)
    : services_(services), execs_(execs), sandbox_(row.id), tenant_(row.tenant) {}

void Contexts::tend(std::shared_ptr<Context> context) {
  // detached: owns a share of the context and of the sandbox, and ends with it
  spawn(services_.executor, Context::tend(std::move(context)));
}

Task<Result<std::shared_ptr<Context>>> Contexts::create(std::shared_ptr<void> sandbox,
                                                        ContextRequest request,
                                                        const Limits& limits) {
  if (all_.size() >= kMaxContexts)
    co_return Error(Code::kExhausted, "the sandbox has its full number of contexts")
        .with_reason("too_many_contexts");
  store::ContextRow row{.sandbox = sandbox_, .tenant = tenant_, .id = ContextId::draw()};
  row.language = std::move(request.language);
  row.directory = std::move(request.directory);
  row.environment = joined_variables(request.environment);
  row.description = std::move(request.description);
  row.created_at_ms = to_milliseconds(services_.clock.wall_now());
  auto context =
      std::make_shared<Context>(services_, execs_, sandbox, row, interpreter_limits(limits));
  auto insert = [row, key = request.idempotency_key](store::Catalog& catalog) {
    return key ? catalog.idempotency().insert_context(*key, row) : catalog.contexts().insert(row);
  };
  ATOLL_CO_TRY_VOID(co_await services_.ledger.run(insert));
  all_.push_back(context);
  tend(context);
  ++being_made_;
  auto ready = co_await context->wait_ready();
  --being_made_;
  if (ready) co_return context;
  Error failure = std::move(ready).error();
  auto removed = co_await remove(context);
  if (!removed) co_return std::move(removed).error();
  if (failure.code() != Code::kUnavailable) co_return failure;
  co_return Error(Code::kConflict, failure.message()).with_reason("language_unavailable");
}

std::shared_ptr<Context> Contexts::find(ContextId id) const {
  auto found = std::find_if(all_.begin(), all_.end(),
                            [id](const auto& context) { return context->row().id == id; });
  return found == all_.end() ? nullptr : *found;
}

Task<Result<std::shared_ptr<ContextRun>>> Contexts::find_run(std::shared_ptr<Context> context,
                                                             uint32_t number) {
  if (auto open = context->find_open(number)) co_return open;
  auto look_up = [row = context->row(), number](store::Catalog& catalog) {
    return catalog.contexts().find_run(row.tenant, row.sandbox, row.id, number);
  };
  ATOLL_CO_TRY(auto row, co_await services_.ledger.run(look_up));
  if (!row) co_return std::shared_ptr<ContextRun>();
  std::shared_ptr<Exec> exec;
  auto id = ExecId::from_number(row->exec);
  if (id) {
    ATOLL_CO_TRY(exec, co_await execs_.open(*id));
  }
  co_return std::make_shared<ContextRun>(services_.executor, std::move(*row), exec);
}

Task<Result<void>> Contexts::remove(std::shared_ptr<Context> context) {
  context->close(Verdict::kKilled);
  std::erase(all_, context);
  auto erase = [row = context->row()](store::Catalog& catalog) {
    return catalog.contexts().remove(row);
  };
  co_return co_await services_.ledger.run(erase);
}

Task<Result<void>> Contexts::adopt() {
  auto read = [id = sandbox_](store::Catalog& catalog) -> Result<std::vector<Adopted>> {
    std::vector<Adopted> found;
    ATOLL_TRY(auto rows, catalog.contexts().all(id));
    for (store::ContextRow& row : rows) {
      ATOLL_TRY(auto runs, catalog.contexts().all_open(id, row.id));
      found.push_back({std::move(row), std::move(runs)});
    }
    return found;
  };
  ATOLL_CO_TRY(adopted_, co_await services_.ledger.run(read));
  co_return Result<void>();
}

ExecKind Contexts::kind_of(ExecId exec) const {
  bool is_ours = std::any_of(adopted_.begin(), adopted_.end(), [exec](const Adopted& adopted) {
    return adopted.row.exec == exec.number();
  });
  return is_ours ? ExecKind::kInterpreter : ExecKind::kProgram;
}

void Contexts::take_up(std::weak_ptr<void> sandbox, const Limits& limits, int64_t now_ms) {
  for (Adopted& adopted : std::exchange(adopted_, {})) {
    auto context = std::make_shared<Context>(services_, execs_, sandbox, std::move(adopted.row),
                                             interpreter_limits(limits));
    context->adopt(std::move(adopted.open_runs), now_ms);
    all_.push_back(context);
    tend(context);
  }
}

bool Contexts::are_busy() const {
  auto is_busy = [](const auto& context) { return context->is_busy(); };
  return being_made_ > 0 || std::any_of(all_.begin(), all_.end(), is_busy);
}

SteadyTime Contexts::last_end() const {
  SteadyTime last = SteadyTime::min();
  for (const auto& context : all_) last = std::max(last, context->last_end());
  return last;
}

void Contexts::hold() {
  for (const auto& context : all_) context->hold();
}

void Contexts::go_on(uint64_t frozen_ms) {
  for (const auto& context : all_) context->go_on(frozen_ms);
}

void Contexts::end_all(Verdict verdict) {
  for (const auto& context : std::exchange(all_, {})) context->close(verdict);
}

}  // namespace atl::sandbox
