// Sandboxes whose memory is given back while they are paused: their isolate ends, their files stay,
// and another isolate has them when they go on, under the same id.
//
// The row says so before the isolate ends and until another one runs. So whatever dies in between,
// the next start ends what is left of an isolate and keeps the files; and where there are none,
// because the machine ended before they were on disk, nobody is told that there were.
#include "base/crash_point.h"
#include "base/log.h"
#include "sandbox/artifacts.h"
#include "sandbox/not_carried.h"
#include "sandbox/pause.h"
#include "sandbox/sandboxes.h"
#include "sandbox/trust.h"

namespace atl::sandbox {

namespace {

Task<Result<void>> store_paused(Ledger& ledger, store::SandboxRow row) {
  auto update = [row](store::Catalog& catalog) { return catalog.kept_sandboxes().set_paused(row); };
  auto stored = co_await ledger.run(update);
  co_return stored;
}

}  // namespace

bool Sandboxes::may_release(const Sandbox& sandbox, Need need) const {
  if (sandbox.state() != State::kPaused) return false;
  if (need == Need::kPressure)
    return sandbox.row().files_only_under_pressure && !sandbox.row().released;
  if (sandbox.row().released) return sandbox.isolate_left_;
  std::optional<SteadyTime> end = sandbox.lifetime().memory_end();
  return end && *end <= services_.clock.steady_now();
}

Task<Result<void>> Sandboxes::release(std::shared_ptr<Sandbox> sandbox, Need need) {
  Pause::Turn turn = co_await Pause::take_turn(sandbox);
  if (!may_release(*sandbox, need)) co_return Result<void>();  // it was put to use meanwhile
  if (sandbox->isolate_left_) co_return co_await finish_release(sandbox);
  ATOLL_CO_TRY(std::vector<NotCarried> lost, co_await find_not_carried(services_, sandbox));
  store::SandboxRow row = sandbox->row();
  row.released = encode_not_carried(lost);
  OutputPatterns patterns = output_patterns(templates_, row);
  if (has_no_artifacts(*sandbox, patterns)) *row.released += kNoArtifacts;
  ATOLL_CO_TRY_VOID(co_await store_paused(services_.ledger, row));
  crash_point("release.row");
  if (sandbox->state() != State::kPaused) co_return not_running(*sandbox);
  log_info("giving memory back", {{"sandbox", row.id.view()}});
  co_return co_await lay_down(sandbox, row);
}

Task<Result<void>> Sandboxes::lay_down(std::shared_ptr<Sandbox> old, store::SandboxRow row) {
  row.state = "running";  // as it is stored: what ran may have left artifacts
  row.next_exec = old->execs().next_number_;
  auto fresh = std::make_shared<Sandbox>(services_, row, std::move(old->reservation_), due_);
  fresh->volumes_ = volumes_.claim(row);
  Pause::Turn turn(fresh);
  Pause::hold(*fresh);
  fresh->isolate_left_ = true;
  // Before anything is awaited: nobody may find the old one and delete the row with it.
  all_.insert_or_assign(row.id, fresh);
  old->replaced_ = true;
  co_await old->begin_deletion(kMemoryGivenBack);
  old->set_isolate_removed();
  ATOLL_CO_TRY_VOID(co_await fresh->contexts().adopt());
  take_up_released(fresh);
  co_return co_await finish_release(fresh);
}

void Sandboxes::take_up_released(std::shared_ptr<Sandbox> sandbox) {
  const store::SandboxRow& row = sandbox->row();
  sandbox->contexts().take_up(sandbox, limits_of(row), row.paused_at_ms);
  Pause::hold(*sandbox);
  sandbox->isolate_left_ = true;
}

Task<Result<void>> Sandboxes::finish_release(std::shared_ptr<Sandbox> sandbox) {
  SandboxId id = sandbox->id();
  auto released = co_await services_.driver.release(id);
  crash_point("release.done");
  if (released) {
    sandbox->isolate_left_ = false;
    sandbox->reservation_.release_memory();
    co_return released;
  }
  if (released.error().code() != Code::kNotFound) co_return released;
  if (sandbox->talks()) co_await sandbox->fail("its files are gone");
  co_return not_running(*sandbox);
}

Task<Result<void>> Sandboxes::bring_back(std::shared_ptr<Sandbox> sandbox, Room room) {
  // Once more: it may not have come to its end, and its files may have gone.
  ATOLL_CO_TRY_VOID(co_await finish_release(sandbox));
  ATOLL_CO_TRY_VOID(co_await promise_again(sandbox, room));
  auto awake = co_await wake(sandbox);
  if (awake) co_return awake;
  store::SandboxRow row = sandbox->row();
  if (row.state == "deleting" || !row.released) co_return awake;
  log_error("a paused sandbox does not come back", {{"sandbox", row.id.view()}, awake.error()});
  row.failure.clear();
  auto rests = co_await store_paused(services_.ledger, row);
  if (rests) rests = co_await lay_down(sandbox, row);
  if (!rests) log_warning("left for the sweep", {{"sandbox", row.id.view()}, rests.error()});
  co_return awake;
}

Task<Result<void>> Sandboxes::promise_again(std::shared_ptr<Sandbox> sandbox, Room room) {
  while (true) {
    Limits limits = limits_of(sandbox->row());
    auto promised = sandbox->reservation_.resize(limits);
    if (promised || promised.error().code() != Code::kExhausted) co_return promised;
    bool made_room = false;
    if (room == Room::kOfPool)
      made_room = co_await pool_.give_up_one();
    else
      made_room = co_await make_room(limits, Admission::Place::kHeld);
    if (!made_room) co_return promised;
  }
}

Task<Result<void>> Sandboxes::wake(std::shared_ptr<Sandbox> sandbox) {
  store::SandboxRow row = sandbox->row();
  ++row.generation;
  fill_random(row.nonce);
  auto renew = [row](store::Catalog& catalog) {
    return catalog.sandboxes_of(row).set_restoring(row);
  };
  ATOLL_CO_TRY_VOID(co_await services_.ledger.run(renew));
  crash_point("wake.row");
  if (sandbox->state() != State::kPaused) co_return not_running(*sandbox);
  sandbox->row_.generation = row.generation;
  sandbox->row_.nonce = row.nonce;
  sandbox->state_ = State::kCreating;
  CreateTimings timings{};
  ATOLL_CO_TRY_VOID(co_await start(sandbox, timings));
  crash_point("wake.launched");
  store::SandboxRow awake = Pause::row_after(*sandbox);
  ATOLL_CO_TRY_VOID(co_await store_paused(services_.ledger, awake));
  crash_point("wake.done");
  if (sandbox->state() != State::kRunning || !sandbox->talks())
    co_return Error(Code::kUnavailable, "its agent is gone").with_reason("isolate_failed");
  Pause::let_go(*sandbox, awake);
  settled_.notify_all();
  auto trusts = co_await install_trust(services_, sandbox);
  if (!trusts)
    log_warning("egress is not trusted", {{"sandbox", sandbox->id().view()}, trusts.error()});
  co_return Result<void>();
}

}  // namespace atl::sandbox
