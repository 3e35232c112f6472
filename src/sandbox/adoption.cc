// Sandboxes after a restart: what the catalog and the host have is taken up again.
#include <set>

#include "base/crash_point.h"
#include "base/log.h"
#include "sandbox/network.h"
#include "sandbox/pause.h"
#include "sandbox/sandboxes.h"
#include "sandbox/trust.h"
#include "sandbox/unlisted.h"

namespace atl::sandbox {

Task<Result<void>> Sandboxes::adopt() {
  ATOLL_CO_TRY_VOID(co_await volumes_.adopt());
  ATOLL_CO_TRY(std::vector<SandboxId> listed, co_await services_.driver.list());
  auto read_rows = [](store::Catalog& catalog) { return catalog.sandboxes().all(); };
  ATOLL_CO_TRY(std::vector<store::SandboxRow> rows, co_await services_.ledger.run(read_rows));
  std::set<SandboxId> unowned(listed.begin(), listed.end());
  for (const store::SandboxRow& row : rows) {
    bool exists = unowned.erase(row.id) > 0;
    if (all_.contains(row.id)) continue;  // taken up by an attempt that failed later on
    ATOLL_CO_TRY_VOID(co_await adopt_row(row, exists));
    crash_point("adopt.row");
  }
  for (SandboxId id : unowned) ATOLL_CO_TRY_VOID(co_await clear_unlisted(services_, id));
  std::set<SandboxId> known;
  for (const store::SandboxRow& row : rows) known.insert(row.id);
  ATOLL_CO_TRY_VOID(clear_unlisted_outputs(services_, known));
  crash_point("adopt.done");
  log_info("took up sandboxes", {{"sandboxes", all_.size()}, {"removed", unowned.size()}});
  co_return Result<void>();
}

Task<Result<void>> Sandboxes::adopt_row(store::SandboxRow row, bool isolate_exists) {
  auto read_execs = [id = row.id](store::Catalog& catalog) {
    return catalog.execs().all_running(id);
  };
  ATOLL_CO_TRY(auto execs, co_await services_.ledger.run(read_execs));
  bool rests = row.state == "running" && row.released.has_value();
  bool comes_back = row.state == "running" && row.persistence == "persistent" && !row.restoring &&
                    !isolate_exists && !rests;
  if (comes_back) ATOLL_CO_TRY_VOID(co_await renew_row(row));
  Limits limits = limits_of(row);
  auto sandbox = std::make_shared<Sandbox>(services_, row,
                                           admission_.count_existing(limits, row.tenant), due_);
  sandbox->volumes_ = volumes_.claim(row);
  if (!isolate_exists && !row.restoring && !comes_back && !rests) sandbox->set_isolate_removed();
  ATOLL_CO_TRY_VOID(co_await sandbox->contexts().adopt());
  for (const store::ExecRow& exec : execs)
    ATOLL_CO_TRY_VOID(
        sandbox->execs().adopt(exec, limits.output_bytes, sandbox->contexts().kind_of(exec.id)));
  bool paused = row.paused_at_ms != 0;
  int64_t now_ms = paused ? row.paused_at_ms : to_milliseconds(services_.clock.wall_now());
  if (row.state == "running" && !row.restoring && !comes_back && !rests)
    sandbox->contexts().take_up(sandbox, limits, now_ms);
  enter(sandbox);
  // `creating` was never acknowledged to anybody, nor was what a work of our own made for itself;
  // `deleting` was, and must come to its end.
  if (row.state == "creating" || row.state == "deleting" || row.transient) {
    auto deleted = co_await delete_now(sandbox);
    if (!deleted) log_warning("left for the sweep", {{"sandbox", row.id.view()}, deleted.error()});
  } else if (row.state == "running" && row.restoring) {
    co_await sandbox->execs().end_all(Verdict::kSandboxGone, "the sandbox was rolled back");
    (void)co_await restore(sandbox);  // or it has failed
  } else if (rests) {
    co_await sandbox->execs().end_all(Verdict::kSandboxGone, kMemoryGivenBack);
    Pause::Turn turn(sandbox);
    take_up_released(sandbox);
    auto released = co_await finish_release(sandbox);
    if (!released)
      log_warning("left for the sweep", {{"sandbox", row.id.view()}, released.error()});
  } else if (comes_back) {
    co_await come_back(sandbox);
  } else if (row.state == "failed") {
    co_await sandbox->execs().end_all(Verdict::kSandboxGone, row.failure);
  } else {
    if (row.limits_unsettled && isolate_exists)
      ATOLL_CO_TRY_VOID(co_await settle_limits(services_, sandbox));
    // Egress is connected to later, and told then.
    ATOLL_CO_TRY(std::string network, full_network(services_, row));
    (void)co_await services_.driver.set_network(row.id, static_cast<uint64_t>(row.tenant.number()),
                                                std::move(network));
    sandbox->set_running();
    if (isolate_exists) {
      auto paused_again = co_await Pause::take_up(sandbox);
      if (!paused_again)
        log_error("a paused sandbox may run", {{"sandbox", row.id.view()}, paused_again.error()});
    }
    sandbox->begin_talk();  // not awaited: one agent that does not answer must not delay the others
  }
  co_return Result<void>();
}

Task<Result<void>> Sandboxes::renew_row(store::SandboxRow& row) {
  row.paused_at_ms = 0;  // what stood still is gone
  ++row.generation;
  fill_random(row.nonce);
  auto update = [row](store::Catalog& catalog) -> Result<void> {
    ATOLL_TRY_VOID(catalog.sandboxes().set_paused(row));
    return catalog.sandboxes_of(row).set_restoring(row);
  };
  auto stored = co_await services_.ledger.run(update);
  co_return stored;
}

Task<void> Sandboxes::come_back(std::shared_ptr<Sandbox> sandbox) {
  SandboxId id = sandbox->id();
  co_await sandbox->execs().end_all(Verdict::kSandboxGone, "its isolate went with the machine");
  crash_point("persistence.row");
  CreateTimings timings{};
  Result<void> made = co_await start(sandbox, timings);
  crash_point("persistence.launched");
  if (made) {
    auto trusts = co_await install_trust(services_, sandbox);
    if (!trusts) log_warning("egress is not trusted", {{"sandbox", id.view()}, trusts.error()});
    int64_t now_ms = to_milliseconds(services_.clock.wall_now());
    sandbox->contexts().take_up(sandbox, limits_of(sandbox->row()), now_ms);
    co_return;
  }
  // Failed for now, with its files: the row is as it was, and the next start tries again.
  log_error("a persistent sandbox does not come back", {{"sandbox", id.view()}, made.error()});
  sandbox->state_ = State::kFailed;
  sandbox->row_.state = "failed";
  sandbox->row_.failure = "it did not come back: " + made.error().message();
  sandbox->set_isolate_removed();
}

}  // namespace atl::sandbox
