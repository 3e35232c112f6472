#include "sandbox/unlisted.h"

#include "base/log.h"

namespace atl::sandbox {

namespace {

struct Name {
  std::string_view kind;
  std::string id;
};

Name name_of(const isolate::Found& found) {
  if (const auto* snapshot = std::get_if<SnapshotId>(&found))
    return {"snapshot", snapshot->string()};
  if (const auto* volume = std::get_if<VolumeId>(&found)) return {"volume", volume->string()};
  return {"sandbox", std::get<SandboxId>(found).string()};
}

}  // namespace

Result<store::Unlisted> fate_of_unlisted(const Ledger& ledger, std::string_view kind,
                                         std::string_view name) {
  if (ledger.pairing() != store::Pairing::kFresh) return ledger.unlisted();
  return Error(Code::kConflict,
               "the database is new, but there is the " + std::string(kind) + " " +
                   std::string(name) +
                   " of another; nothing was touched\n  remedy: put the database back; or `atoll "
                   "restore` a backup into another --state-dir; or `atoll down`, then `atoll up "
                   "--adopt-orphans`, which sets aside for a week what no row names")
      .with_reason("database_mismatch");
}

Task<Result<void>> clear_unlisted(Services& services, isolate::Found found) {
  Name name = name_of(found);
  ATOLL_CO_TRY(store::Unlisted fate, fate_of_unlisted(services.ledger, name.kind, name.id));
  bool keeps = fate == store::Unlisted::kSetAside;
  log_warning(keeps ? "setting aside what no row knows" : "removing what no row knows",
              {{name.kind, name.id}});
  if (keeps) co_return co_await services.driver.set_aside(found);
  if (const auto* isolate = std::get_if<SandboxId>(&found))
    co_return co_await services.driver.remove(*isolate);
  if (const auto* snapshot = std::get_if<SnapshotId>(&found))
    co_return co_await services.driver.remove_snapshot(*snapshot);
  co_return co_await services.driver.remove_volume(std::get<VolumeId>(found));
}

Result<void> clear_unlisted_outputs(Services& services, const std::set<SandboxId>& with_row) {
  ATOLL_TRY(std::vector<SandboxId> all, services.outputs.sandboxes());
  for (const SandboxId& id : all) {
    if (with_row.contains(id)) continue;
    ATOLL_TRY(store::Unlisted fate, fate_of_unlisted(services.ledger, "output", id.view()));
    log_warning("removing the output of a sandbox that no row knows", {{"sandbox", id.view()}});
    auto cleared = services.outputs.clear_unlisted(id, fate);
    // What is to be set aside must not be what the next start removes.
    if (!cleared && fate == store::Unlisted::kSetAside) return cleared;
    if (!cleared) log_warning("left to the next start", {cleared.error()});
  }
  return {};
}

}  // namespace atl::sandbox
