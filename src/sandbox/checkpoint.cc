// Snapshots that are cut by themselves, before each exec and each run of a sandbox that wants it.
#include "base/log.h"
#include "sandbox/snapshots.h"

namespace atl::sandbox {

namespace {

bool is_automatic(const store::SnapshotRow& row) {
  return row.reason == "checkpoint" || row.reason == "rollback";
}

}  // namespace

Task<Result<void>> Snapshots::checkpoint(std::shared_ptr<Sandbox> sandbox, std::string label) {
  CutSnapshot request{.label = std::move(label), .reason = "checkpoint"};
  auto kept = co_await cut(sandbox, std::move(request));
  if (!kept) co_return std::move(kept).error();
  store::TenantId tenant = sandbox->row().tenant;
  store::SnapshotQuery wanted;
  wanted.sandbox = sandbox->id();
  ATOLL_CO_TRY(std::vector<store::SnapshotRow> rows, co_await list(tenant, wanted));
  std::erase_if(rows, [](const auto& row) { return row.reason != "checkpoint"; });
  for (size_t i = 0; i + kMaxCheckpoints < rows.size(); ++i) {
    auto removed = co_await remove(tenant, rows[i].id, store::Orphans::kAdopt);
    if (!removed) log_warning("an old checkpoint is left", {removed.error()});
  }
  co_return Result<void>();
}

Task<void> Snapshots::sweep() {
  auto read = [](store::Catalog& catalog) { return catalog.snapshots().all(); };
  auto rows = co_await services_.ledger.run(read);
  if (!rows) co_return;
  for (const store::SnapshotRow& row : *rows) {
    if (!is_automatic(row) || sandboxes_.all().contains(row.sandbox)) continue;
    auto removed = co_await remove(row.tenant, row.id, store::Orphans::kAdopt);
    if (!removed) log_warning("a snapshot is left", {{"snapshot", row.id.view()}, removed.error()});
  }
}

}  // namespace atl::sandbox
