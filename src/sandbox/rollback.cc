// A sandbox goes back to a snapshot: under the same id, with another isolate.
//
// First what it holds now is kept. Then its row says which snapshot it shall begin with and that it
// is to be made anew; from there on nothing but that can follow, also after a crash.
#include <algorithm>
#include <set>

#include "base/crash_point.h"
#include "base/log.h"
#include "sandbox/not_carried.h"
#include "sandbox/pause.h"
#include "sandbox/sandboxes.h"
#include "sandbox/snapshots.h"
#include "sandbox/trust.h"

namespace atl::sandbox {

namespace {

Error not_of_its_line() {
  return Error(Code::kConflict, "the snapshot is of another sandbox, and no ancestor of this one")
      .with_reason("snapshot_of_another_line");
}

// It was cut from this sandbox, or is what this one came from.
Task<Result<void>> check_line(Ledger& ledger, store::SandboxRow sandbox,
                              store::SnapshotRow target) {
  if (target.sandbox == sandbox.id) co_return Result<void>();
  std::optional<SnapshotId> next = sandbox.snapshot;
  for (uint64_t seen = 0; next && seen < kMaxSnapshots; ++seen) {
    if (*next == target.id) co_return Result<void>();
    ATOLL_CO_TRY(store::SnapshotRow row, co_await find_snapshot(ledger, sandbox.tenant, *next));
    next = row.parent;
  }
  co_return not_of_its_line();
}

Task<Result<void>> store_restoring(Ledger& ledger, store::SandboxRow row) {
  auto update = [row](store::Catalog& catalog) {
    return catalog.sandboxes_of(row).set_restoring(row);
  };
  auto stored = co_await ledger.run(update);
  co_return stored;
}

store::SandboxRow restoring_row(store::SandboxRow row, const store::SnapshotRow& target) {
  row.snapshot = target.id;
  row.inherited_bytes = target.bytes;
  row.restoring = true;
  ++row.generation;
  fill_random(row.nonce);
  return row;
}

}  // namespace

Task<Result<RolledBack>> Snapshots::roll_back(std::shared_ptr<Sandbox> sandbox, SnapshotId id) {
  store::TenantId tenant = sandbox->row().tenant;
  ATOLL_CO_TRY(store::SnapshotRow target, co_await find_snapshot(services_.ledger, tenant, id));
  ATOLL_CO_TRY_VOID(co_await Pause::wake(sandbox));
  Pause::Turn turn = co_await Pause::take_turn(sandbox);
  if (sandbox->state() != State::kRunning) co_return not_running(*sandbox);
  InUse in_use(*this, id);
  ATOLL_CO_TRY_VOID(co_await check_line(services_.ledger, sandbox->row(), target));
  ATOLL_CO_TRY_VOID(check_disk(restoring_row(sandbox->row(), target)));
  ATOLL_CO_TRY(std::vector<SnapshotId> listed, co_await services_.driver.list_snapshots());
  if (std::find(listed.begin(), listed.end(), id) == listed.end())
    co_return Error(Code::kNotFound, "its files are not on this host").with_reason("snapshot_lost");
  RolledBack done;
  ATOLL_CO_TRY(done.not_carried, co_await find_not_carried(services_, sandbox));
  CutSnapshot safety{.label = "before the rollback to " + id.string(), .reason = "rollback"};
  auto kept = co_await keep(sandbox, std::move(safety));
  if (!kept) co_return std::move(kept).error();
  done.undo = kept->row.id;
  crash_point("rollback.kept");
  store::SandboxRow row = restoring_row(sandbox->row(), target);
  ATOLL_CO_TRY_VOID(co_await store_restoring(services_.ledger, row));
  crash_point("rollback.row");
  ATOLL_CO_TRY(done.sandbox, co_await sandboxes_.remake(sandbox, row));
  co_return done;
}

Task<Result<std::shared_ptr<Sandbox>>> Sandboxes::remake(std::shared_ptr<Sandbox> old,
                                                         store::SandboxRow row) {
  if (old->state() == State::kDeleting) co_return not_running(*old);
  row.state = "running";  // as it is stored: what ran may have left artifacts
  row.next_exec = old->execs().next_number_;
  Reservation reservation = admission_.count_existing(limits_of(row), row.tenant);
  auto fresh = std::make_shared<Sandbox>(services_, row, std::move(reservation), due_);
  fresh->volumes_ = volumes_.claim(row);
  // Before anything is awaited: nobody may find the old one and delete the row with it.
  all_.insert_or_assign(row.id, fresh);
  old->replaced_ = true;
  co_await old->begin_deletion("the sandbox was rolled back");
  old->set_isolate_removed();
  auto restored = co_await restore(fresh);
  if (!restored) co_return std::move(restored).error();
  co_return fresh;
}

Task<Result<void>> Sandboxes::restore(std::shared_ptr<Sandbox> sandbox) {
  SandboxId id = sandbox->id();
  Result<void> made = co_await services_.driver.vacate(id);
  crash_point("rollback.removed");
  if (made) made = co_await sandbox->contexts().adopt();
  CreateTimings timings{};
  if (made) made = co_await start(sandbox, timings);
  if (made) {
    // What it began with has it already, as a rule.
    auto trusts = co_await install_trust(services_, sandbox);
    if (!trusts) log_warning("egress is not trusted", {{"sandbox", id.view()}, trusts.error()});
  }
  store::SandboxRow row = sandbox->row();
  row.restoring = false;
  if (made) made = co_await store_restoring(services_.ledger, row);
  crash_point("rollback.done");
  if (made) made = sandbox->apply(row);
  settled_.notify_all();
  if (made) {
    int64_t now_ms = to_milliseconds(services_.clock.wall_now());
    sandbox->contexts().take_up(sandbox, limits_of(row), now_ms);
    co_return made;
  }
  log_error("a rollback failed", {{"sandbox", id.view()}, made.error()});
  if (sandbox->talks()) {
    co_await sandbox->fail("the rollback failed: " + made.error().message());
    co_return made;
  }
  // It was deleted meanwhile, perhaps before there was an isolate.
  auto removed = co_await services_.driver.remove(id);
  if (!removed) log_error("an isolate is left", {{"sandbox", id.view()}, removed.error()});
  co_return made;
}

}  // namespace atl::sandbox
