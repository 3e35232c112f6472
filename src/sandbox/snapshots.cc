#include "sandbox/snapshots.h"

#include <algorithm>
#include <set>

#include <boost/asio/steady_timer.hpp>

#include "async/spawn.h"
#include "base/crash_point.h"
#include "base/log.h"
#include "sandbox/pause.h"
#include "sandbox/still_files.h"
#include "sandbox/unlisted.h"

namespace atl::sandbox {

namespace {

// A warden that died is back sooner than that.
constexpr int kMaxRemovals = 10;
constexpr std::chrono::milliseconds kRemovalPause{200};

store::SnapshotRow row_of(const store::SandboxRow& sandbox, SnapshotId id, CutSnapshot request) {
  store::SnapshotRow row{
      .id = id, .tenant = sandbox.tenant, .sandbox = sandbox.id, .image = sandbox.image};
  row.parent = sandbox.snapshot;
  row.label = std::move(request.label);
  row.metadata = std::move(request.metadata);
  row.reason = std::move(request.reason);
  row.manifest = request.manifest;
  row.sealed_bytes = request.sealed_bytes;
  row.isolation = sandbox.isolation;
  row.template_name = sandbox.template_name;
  row.cpu_millis = sandbox.cpu_millis;
  row.memory_bytes = sandbox.memory_bytes;
  row.pids = sandbox.pids;
  row.disk_bytes = sandbox.disk_bytes;
  return row;
}

struct Removed {
  bool sealed = false;
  std::optional<SnapshotId> parent = {};
};

// Of a sandbox in its turn.
// Draws the number right before the warden is asked: an exec that is asked for while the
// files are cut begins after they were, and belongs to what a replay does again.
Task<Result<isolate::Cut>> cut_files(Services& services, std::shared_ptr<Sandbox> sandbox,
                                     SnapshotId id, int64_t& sequence) {
  uint64_t inherited_bytes = sandbox->row().inherited_bytes;
  SandboxId cut_from = sandbox->id();
  if (!StillFiles::are_needed(sandbox->row())) {
    sequence = services.ledger.draw();
    auto cut = co_await services.driver.cut(cut_from, id, inherited_bytes);
    co_return cut;
  }
  ATOLL_CO_TRY(std::unique_ptr<StillFiles> still, co_await StillFiles::begin(sandbox));
  sequence = services.ledger.draw();
  auto cut = co_await services.driver.cut(cut_from, id, inherited_bytes);
  auto ended = co_await still->end();
  if (!cut) co_return cut;
  if (!ended) co_return std::move(ended).error();
  // However often it was written, a disk holds no more than fits on it.
  cut->held_bytes = std::min(cut->held_bytes, sandbox->row().disk_bytes);
  co_return cut;
}

Error no_such_snapshot() {
  return Error(Code::kNotFound, "there is no such snapshot").with_reason("snapshot_not_found");
}

}  // namespace

Snapshots::Snapshots(Sandboxes& sandboxes, Admission& admission)
    : sandboxes_(sandboxes), services_(sandboxes.services()), admission_(admission) {
  services_.checkpoint = [this](std::shared_ptr<Sandbox> sandbox, std::string label) {
    return checkpoint(std::move(sandbox), std::move(label));
  };
}

Task<Result<Kept>> Snapshots::cut(std::shared_ptr<Sandbox> sandbox, CutSnapshot request) {
  Pause::Turn turn = co_await Pause::take_turn(sandbox);
  State state = sandbox->state();
  if (state != State::kRunning && state != State::kPaused) co_return not_running(*sandbox);
  // One that has only its files needs no isolate for this, nor one that is still being ended.
  bool half_released = sandbox->row().released && holds_memory(*sandbox);
  if (half_released) ATOLL_CO_TRY_VOID(co_await sandboxes_.finish_release(sandbox));
  auto kept = co_await keep(sandbox, std::move(request));
  co_return kept;
}

Task<Result<Kept>> Snapshots::keep(std::shared_ptr<Sandbox> sandbox, CutSnapshot request) {
  store::TenantId tenant = sandbox->row().tenant;
  auto count = [tenant](store::Catalog& catalog) { return catalog.snapshots().count(tenant); };
  ATOLL_CO_TRY(uint64_t held, co_await services_.ledger.run(count));
  if (held >= kMaxSnapshots)
    co_return Error(Code::kExhausted, "the tenant has its full number of snapshots")
        .with_reason("too_many_snapshots");
  // Until it is known how much is in it.
  ATOLL_CO_TRY(Reservation reservation, admission_.reserve_disk(sandbox->row().disk_bytes, tenant));
  SnapshotId id = SnapshotId::draw();
  int64_t cut_sequence = 0;
  auto cut = co_await cut_files(services_, sandbox, id, cut_sequence);
  crash_point("snapshot.cut");
  if (!cut) {
    co_await remove_files(id);  // its answer may have been lost after it was made
    co_return std::move(cut).error();
  }
  store::SnapshotRow row = row_of(sandbox->row(), id, std::move(request));
  row.cut_sequence = cut_sequence;
  row.bytes = cut->held_bytes;
  row.created_at_ms = to_milliseconds(services_.clock.wall_now());
  row.sequence = services_.ledger.draw();
  auto insert = [row](store::Catalog& catalog) { return catalog.snapshots().insert(row); };
  auto stored = co_await services_.ledger.run(insert);
  crash_point("snapshot.row");
  if (!stored) {
    co_await remove_files(id);
    co_return std::move(stored).error();
  }
  reservation.resize_disk(row.bytes);
  reservations_.insert_or_assign(id, std::move(reservation));
  store::SandboxRow after = sandbox->row();
  after.snapshot = id;
  auto applied = sandbox->apply(after);
  if (!applied) co_return std::move(applied).error();
  co_return Kept{std::move(row), cut->frozen};
}

Task<void> Snapshots::remove_files(SnapshotId id) {
  Result<void> removed;
  for (int tries = 0; tries < kMaxRemovals; ++tries) {
    removed = co_await services_.driver.remove_snapshot(id);
    if (removed) co_return;
    boost::asio::steady_timer pause(services_.executor, kRemovalPause);
    co_await wait(pause);
  }
  // The next start finds them without a row.
  log_warning("files of a snapshot are left", {{"snapshot", id.view()}, removed.error()});
}

Task<Result<store::SnapshotRow>> find_snapshot(Ledger& ledger, store::TenantId tenant,
                                               SnapshotId id) {
  auto look_up = [tenant, id](store::Catalog& catalog) {
    return catalog.snapshots().find(tenant, id);
  };
  ATOLL_CO_TRY(std::optional<store::SnapshotRow> row, co_await ledger.run(look_up));
  if (!row) co_return no_such_snapshot();
  co_return std::move(*row);
}

Task<Result<std::vector<store::SnapshotRow>>> Snapshots::list(store::TenantId tenant,
                                                              store::SnapshotQuery wanted) {
  auto read = [tenant, wanted](store::Catalog& catalog) {
    return catalog.snapshots().list(tenant, wanted);
  };
  auto rows = co_await services_.ledger.run(read);
  co_return rows;
}

// The row first: from then on nobody is told of it, and what is left of its files goes at the next
// start at the latest.
Task<Result<void>> Snapshots::remove(store::TenantId tenant, SnapshotId id,
                                     store::Orphans orphans) {
  if (in_use_->contains(id))
    co_return Error(Code::kConflict, "a sandbox or a pack is being made from it")
        .with_reason("snapshot_in_use");
  auto erase = [tenant, id, orphans](store::Catalog& catalog) -> Result<Removed> {
    ATOLL_TRY(std::optional<store::SnapshotRow> row, catalog.snapshots().find(tenant, id));
    Removed done{.sealed = row && row->manifest};
    ATOLL_TRY(done.parent, catalog.snapshots().remove(tenant, id, orphans));
    return done;
  };
  auto removed = co_await services_.ledger.run(erase);
  crash_point("snapshot.unlisted");
  if (!removed && removed.error().code() == Code::kNotFound) co_return no_such_snapshot();
  if (!removed) co_return std::move(removed).error();
  // As their rows are now.
  for (const auto& [number, sandbox] : sandboxes_.all()) {
    store::SandboxRow row = sandbox->row();
    if (row.snapshot != id) continue;
    row.snapshot = removed->parent;
    auto applied = sandbox->apply(row);
    if (!applied) log_error("a sandbox has a snapshot that is gone", {applied.error()});
  }
  co_await remove_files(id);
  reservations_.erase(id);
  if (removed->sealed && on_unsealed_) on_unsealed_();
  co_return Result<void>();
}

Task<Result<void>> Snapshots::adopt() {
  ATOLL_CO_TRY(std::vector<SnapshotId> listed, co_await services_.driver.list_snapshots());
  auto read = [](store::Catalog& catalog) { return catalog.snapshots().all(); };
  ATOLL_CO_TRY(std::vector<store::SnapshotRow> rows, co_await services_.ledger.run(read));
  std::set<SnapshotId> unowned(listed.begin(), listed.end());
  for (const store::SnapshotRow& row : rows) {
    if (unowned.erase(row.id) == 0)
      log_error("the files of a snapshot are gone", {{"snapshot", row.id.view()}});
    reservations_.insert_or_assign(row.id, admission_.count_disk(row.bytes, row.tenant));
    // Nobody was told of it: it would have gone at the end of the fork or diff.
    if (row.reason == "fork" || row.reason == "diff")
      ATOLL_CO_TRY_VOID(co_await remove(row.tenant, row.id, store::Orphans::kAdopt));
  }
  for (SnapshotId id : unowned) ATOLL_CO_TRY_VOID(co_await clear_unlisted(services_, id));
  co_return Result<void>();
}

}  // namespace atl::sandbox
