#include "sandbox/sandbox_change.h"

#include <algorithm>

#include "base/crash_point.h"
#include "base/log.h"
#include "sandbox/floor.h"
#include "sandbox/network.h"
#include "sandbox/secrets.h"
#include "sandbox/trust.h"

namespace atl::sandbox {

namespace {

store::SandboxRow changed_row(store::SandboxRow row, const ChangeSandbox& request,
                              const Clock& clock) {
  if (request.ttl_ms) {
    row.ttl_ms = *request.ttl_ms;
    // No time passes for one that is paused.
    bool paused = row.paused_at_ms != 0;
    row.ttl_from_ms = paused ? row.paused_at_ms : to_milliseconds(clock.wall_now());
  }
  row.idle_ttl_ms = request.idle_ttl_ms.value_or(row.idle_ttl_ms);
  row.on_ttl = request.on_ttl.value_or(row.on_ttl);
  row.auto_resume = request.auto_resume.value_or(row.auto_resume);
  row.files_only_after_ms = request.files_only_after_ms.value_or(row.files_only_after_ms);
  row.files_only_under_pressure =
      request.files_only_under_pressure.value_or(row.files_only_under_pressure);
  row.checkpoint = request.checkpoint.value_or(row.checkpoint);
  row.metadata = request.metadata.value_or(row.metadata);
  if (request.network) row.network = keep_placeholders(row.network, *request.network);
  row.cpu_millis = request.cpu_millis.value_or(row.cpu_millis);
  row.memory_bytes = request.memory_bytes.value_or(row.memory_bytes);
  row.pids = request.pids.value_or(row.pids);
  row.disk_bytes = request.disk_bytes.value_or(row.disk_bytes);
  row.disk_bytes_per_second = request.disk_bytes_per_second.value_or(row.disk_bytes_per_second);
  row.output_bytes = request.output_bytes.value_or(row.output_bytes);
  row.open_files = request.open_files.value_or(row.open_files);
  row.cpu_time_ms = request.cpu_time_ms.value_or(row.cpu_time_ms);
  return row;
}

bool changes_wall(const store::SandboxRow& before, const store::SandboxRow& after) {
  return before.limits_unsettled || before.cpu_millis != after.cpu_millis ||
         before.memory_bytes != after.memory_bytes || before.pids != after.pids ||
         before.disk_bytes != after.disk_bytes ||
         before.disk_bytes_per_second != after.disk_bytes_per_second;
}

// `before`, with limits that cover both.
store::SandboxRow unsettled_row(store::SandboxRow before, const store::SandboxRow& after) {
  before.cpu_millis = std::max(before.cpu_millis, after.cpu_millis);
  before.memory_bytes = std::max(before.memory_bytes, after.memory_bytes);
  before.pids = std::max(before.pids, after.pids);
  before.disk_bytes = std::max(before.disk_bytes, after.disk_bytes);
  bool unlimited = before.disk_bytes_per_second == 0 || after.disk_bytes_per_second == 0;
  uint64_t rate = std::max(before.disk_bytes_per_second, after.disk_bytes_per_second);
  before.disk_bytes_per_second = unlimited ? 0 : rate;
  before.limits_unsettled = true;
  return before;
}

Task<Result<void>> store_row(Services& services, store::SandboxRow row) {
  auto change = [row](store::Catalog& catalog) { return catalog.sandboxes_of(row).change(row); };
  auto stored = co_await services.ledger.run(change);
  crash_point("patch.row");
  if (!stored && stored.error().code() == Code::kNotFound)
    co_return std::move(stored).error().with_reason("sandbox_not_found");
  co_return stored;
}

// Reserves and stores; what could not be stored is not reserved either.
Task<Result<void>> take_over(Services& services, std::shared_ptr<Sandbox> sandbox,
                             store::SandboxRow row) {
  store::SandboxRow before = sandbox->row();
  ATOLL_CO_TRY_VOID(sandbox->apply(row));
  auto stored = co_await store_row(services, row);
  if (stored) co_return stored;
  auto back = sandbox->apply(before);
  if (!back) log_error("more stays reserved", {{"sandbox", row.id.view()}, back.error()});
  co_return stored;
}

Task<Result<void>> change_wall(Services& services, std::shared_ptr<Sandbox> sandbox,
                               store::SandboxRow after) {
  store::SandboxRow before = sandbox->row();
  store::SandboxRow both = unsettled_row(before, after);
  ATOLL_CO_TRY_VOID(co_await take_over(services, sandbox, both));
  isolate::WallLimits wanted = limits_of(after).wall;
  crash_point("patch.begun");
  auto changed = co_await services.driver.change_limits(after.id, wanted);
  crash_point("patch.limits");
  if (changed) {
    after.limits_unsettled = false;
    co_return co_await take_over(services, sandbox, after);
  }
  // Its answer may have been lost after the change was made.
  isolate::WallLimits old = limits_of(before).wall;
  auto restored = co_await services.driver.change_limits(before.id, old);
  if (restored) restored = co_await take_over(services, sandbox, before);
  if (!restored)
    log_error("limits stay unsettled", {{"sandbox", before.id.view()}, restored.error()});
  co_return std::move(changed).error();
}

// Stored first: an egress that is away is told the stored one when it comes back, and until then
// nothing leaves. In force, or an error.
Task<Result<void>> change_network(Services& services, std::shared_ptr<Sandbox> sandbox,
                                  store::SandboxRow after) {
  store::SandboxRow row = sandbox->row();
  row.network = after.network;
  ATOLL_CO_TRY_VOID(co_await take_over(services, sandbox, row));
  if (row.released) co_return Result<void>();  // told when it has an isolate
  ATOLL_CO_TRY_VOID(co_await apply_network(services, row));
  if (sandbox->state() != State::kRunning) co_return Result<void>();
  co_return co_await install_trust(services, sandbox);
}

Error not_running(State state) {
  return Error(Code::kConflict,
               "the sandbox is " + std::string(state_name(state)) + ", not running")
      .with_reason("sandbox_not_running");
}

}  // namespace

Result<void> check_disk(const store::SandboxRow& row) {
  if (row.isolation != "jail") return {};  // its disk has a size, however full it began
  uint64_t least = row.inherited_bytes + isolate::kMinDiskBytes;
  if (row.inherited_bytes == 0 || row.disk_bytes >= least) return {};
  return Error(Code::kInvalid, "it begins with " + std::to_string(row.inherited_bytes) +
                                   " bytes; disk_bytes must be at least " + std::to_string(least))
      .with_reason("invalid_field")
      .with_field("limits.disk_bytes");
}

Task<Result<void>> change_sandbox(Services& services, std::shared_ptr<Sandbox> sandbox,
                                  ChangeSandbox request) {
  if (sandbox->state() == State::kCreating || sandbox->state() == State::kDeleting)
    co_return not_running(sandbox->state());
  const store::SandboxRow& now = sandbox->row();
  if (request.open_files.value_or(0) > now.open_files)
    co_return Error(Code::kInvalid, "open_files of a sandbox that exists can only be lowered")
        .with_reason("limit_fixed")
        .with_field("limits.open_files");
  store::SandboxRow after = changed_row(now, request, services.clock);
  ATOLL_CO_TRY_VOID(check_disk(after));
  ATOLL_CO_TRY_VOID(check_wall(after));
  if (changes_wall(now, after)) ATOLL_CO_TRY_VOID(check_change(now));
  Secrets secrets(services.driver, now.tenant);
  Result<void> known;
  if (request.network) known = co_await secrets.check(after.network);
  // What an egress that cannot be asked serves now is taken away all the same.
  if (!known && known.error().reason() != "egress_unavailable") co_return known;
  if (request.network) ATOLL_CO_TRY_VOID(co_await change_network(services, sandbox, after));
  if (!known) co_return known;
  bool has_wall = !now.released;  // else its next one gets them
  if (!has_wall || !changes_wall(now, after))
    co_return co_await take_over(services, sandbox, after);
  bool is_up = sandbox->state() == State::kRunning || sandbox->state() == State::kPaused;
  if (!is_up) co_return not_running(sandbox->state());
  co_return co_await change_wall(services, sandbox, after);
}

Task<Result<void>> settle_limits(Services& services, std::shared_ptr<Sandbox> sandbox) {
  store::SandboxRow row = sandbox->row();
  isolate::WallLimits stored = limits_of(row).wall;
  auto settled = co_await services.driver.change_limits(row.id, stored);
  row.limits_unsettled = false;
  if (settled) co_return co_await take_over(services, sandbox, row);
  log_error("limits stay unsettled", {{"sandbox", row.id.view()}, settled.error()});
  co_return Result<void>();
}

}  // namespace atl::sandbox
