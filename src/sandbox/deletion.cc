// Sandboxes that end: by a request, in time, or because their create failed.

#include "async/spawn.h"
#include "base/crash_point.h"
#include "base/log.h"
#include "sandbox/artifacts.h"
#include "sandbox/mark.h"
#include "sandbox/not_carried.h"
#include "sandbox/pause.h"
#include "sandbox/sandboxes.h"

namespace atl::sandbox {

namespace {

// From then on nothing but its end is left of it, also after a restart.
Task<Result<void>> store_deleting(Ledger& ledger, store::SandboxRow row) {
  auto store_state = [row](store::Catalog& catalog) {
    return catalog.sandboxes_of(row).set_state(row.tenant, row.id, "deleting", "");
  };
  auto stored = co_await ledger.run_to_free(store_state);
  if (!stored && stored.error().code() != Code::kNotFound) co_return std::move(stored).error();
  crash_point("delete.begun");
  co_return Result<void>();
}

}  // namespace

Task<Result<void>> Sandboxes::remove(store::TenantId tenant, SandboxId id) {
  std::shared_ptr<Sandbox> sandbox = find(tenant, id);
  if (!sandbox) co_return Error(Code::kNotFound, "there is no such sandbox");
  co_return co_await delete_now(sandbox);
}

Task<Result<void>> Sandboxes::delete_now(std::shared_ptr<Sandbox> sandbox) {
  auto deleted = co_await try_delete(sandbox);
  if (!deleted) due_.notify_all();
  co_return deleted;
}

// Each step can be repeated: a failure or a crash in between leaves a row in state `deleting`,
// which the sweep and the next start take up.
Task<Result<void>> Sandboxes::try_delete(std::shared_ptr<Sandbox> sandbox) {
  ATOLL_CO_TRY_VOID(co_await begin_delete(sandbox));
  co_return co_await end_delete(sandbox);
}

Task<void> Sandboxes::retire(std::shared_ptr<Sandbox> sandbox) {
  free_name(*sandbox);
  retired_.insert(sandbox->id());
  settled_.notify_all();
  co_await keep_artifacts_once(sandbox);
  auto finish = [](Sandboxes& all, std::shared_ptr<Sandbox> gone) -> Task<void> {
    store::SandboxRow row = gone->row();
    auto ended = co_await store_deleting(all.services_.ledger, row);
    if (ended) ended = co_await all.end_delete(gone);
    if (ended) co_return;
    log_warning("left for the sweep", {{"sandbox", gone->id().view()}, ended.error()});
    all.due_.notify_all();
  };
  // detached: owned by this object, whose sweep finishes what it cannot
  spawn(services_.executor, finish(*this, sandbox));
}

Task<Result<void>> Sandboxes::begin_delete(std::shared_ptr<Sandbox> sandbox) {
  if (sandbox->row().released) ATOLL_CO_TRY_VOID(co_await begin_delete_at_rest(sandbox));
  store::SandboxRow row = sandbox->row();
  ATOLL_CO_TRY_VOID(co_await store_deleting(services_.ledger, row));
  free_name(*sandbox);
  settled_.notify_all();
  // What it left is read by a program inside.
  bool frozen = sandbox->state() == State::kPaused && !sandbox->row().released;
  if (frozen) (void)co_await Pause::end(sandbox);
  if (!sandbox->row().transient) co_await keep_artifacts_once(sandbox);
  co_return Result<void>();
}

// In its turn: one that somebody else brings back would say in its row that it runs.
Task<Result<void>> Sandboxes::begin_delete_at_rest(std::shared_ptr<Sandbox> sandbox) {
  Pause::Turn turn = co_await Pause::take_turn(sandbox);
  const std::optional<std::string>& released = sandbox->row().released;
  if (sandbox->state() != State::kPaused || !released) co_return Result<void>();
  if (!released->ends_with(kNoArtifacts)) {
    // Before its row says that it goes, for the same reason. If it cannot run they are lost.
    auto awake = co_await bring_back(sandbox, Room::kOfPool);
    if (awake) co_return awake;
  }
  store::SandboxRow row = sandbox->row();
  ATOLL_CO_TRY_VOID(co_await store_deleting(services_.ledger, row));
  co_await sandbox->begin_deletion();
  co_return Result<void>();
}

Task<Result<void>> Sandboxes::end_delete(std::shared_ptr<Sandbox> sandbox) {
  SandboxId id = sandbox->id();
  // It may have been made anew since the deletion was begun.
  if (auto found = all_.find(id); found != all_.end()) sandbox = found->second;
  co_await sandbox->begin_deletion();
  ATOLL_CO_TRY_VOID(co_await free_isolate(sandbox));
  crash_point("delete.removed");
  ATOLL_CO_TRY_VOID(services_.outputs.remove_sandbox_logs(id));
  crash_point("delete.logs");
  auto delete_row = [row = sandbox->row()](store::Catalog& catalog) {
    return catalog.sandboxes_of(row).remove(row.tenant, row.id);
  };
  // kNotFound: a second delete of the same sandbox came to its end first.
  auto deleted = co_await services_.ledger.run_to_free(delete_row);
  if (!deleted && deleted.error().code() != Code::kNotFound) co_return std::move(deleted).error();
  crash_point("delete.row");
  all_.erase(id);
  retired_.erase(id);
  unanswered_.erase(id);
  co_return Result<void>();
}

// Two deletions of one sandbox may be under way: the second waits, so as not to cut the first one
// off from what it reads.
Task<void> Sandboxes::keep_artifacts_once(std::shared_ptr<Sandbox> sandbox) {
  while (keeping_.contains(sandbox->id())) co_await kept_.wait();
  Mark keeping(keeping_, sandbox->id(), kept_);
  OutputPatterns patterns = output_patterns(templates_, sandbox->row());
  co_await keep_artifacts(sandbox, std::move(patterns), services_);
}

Task<Result<void>> Sandboxes::free_isolate(std::shared_ptr<Sandbox> sandbox) {
  // A removal before it is there would find nothing, and the isolate would come after it.
  while (starting_.contains(sandbox->id())) co_await settled_.wait();
  // Its files may be there without an isolate: those that are kept, now or since it was paused.
  const store::SandboxRow& row = sandbox->row();
  bool may_hold = row.persistence == "persistent" || row.released || row.generation > 1;
  if (!sandbox->isolate_removed() || may_hold) {
    ATOLL_CO_TRY_VOID(co_await services_.driver.remove(sandbox->id()));
    sandbox->set_isolate_removed();
  }
  co_return Result<void>();
}

}  // namespace atl::sandbox
