#include "sandbox/pause.h"

#include <algorithm>

#include "base/crash_point.h"
#include "base/log.h"

namespace atl::sandbox {

namespace {

// The ttl goes on with what was left of it, or begins anew if that was nothing.
int64_t ttl_from_after(const store::SandboxRow& row, int64_t now_ms) {
  int64_t spent_ms = row.paused_at_ms - row.ttl_from_ms;
  bool was_over = spent_ms >= static_cast<int64_t>(row.ttl_ms);
  return was_over ? now_ms : now_ms - spent_ms;
}

}  // namespace

Pause::Turn::Turn(std::shared_ptr<Sandbox> sandbox) : sandbox_(std::move(sandbox)) {
  sandbox_->in_turn_ = true;
}

Pause::Turn::~Turn() {
  if (!sandbox_) return;
  sandbox_->in_turn_ = false;
  sandbox_->changed_.notify_all();
}

Task<Pause::Turn> Pause::take_turn(std::shared_ptr<Sandbox> sandbox) {
  while (sandbox->in_turn_) co_await sandbox->changed_.wait();
  co_return Turn(sandbox);
}

Task<Result<void>> Pause::begin(std::shared_ptr<Sandbox> sandbox) {
  Turn turn = co_await take_turn(sandbox);
  if (sandbox->state_ == State::kPaused) co_return Result<void>();
  if (sandbox->state_ != State::kRunning) co_return not_running(*sandbox);
  sandbox->row_.paused_at_ms = to_milliseconds(sandbox->services_.clock.wall_now());
  sandbox->row_.paused_sequence = sandbox->services_.ledger.draw();
  hold(*sandbox);
  store::SandboxRow row = sandbox->row_;
  Result<void> paused = co_await store(*sandbox, row);
  crash_point("pause.row");
  if (paused) paused = co_await freeze(sandbox);
  crash_point("pause.frozen");
  bool may_rest = sandbox->lifetime_.memory_end() || row.files_only_under_pressure;
  if (paused && may_rest) sandbox->due_.notify_all();
  if (paused) co_return paused;
  auto undone = co_await go_on(sandbox);
  if (!undone)
    log_error("a pause is half undone", {{"sandbox", sandbox->id().view()}, undone.error()});
  co_return paused;
}

Task<Result<void>> Pause::end(std::shared_ptr<Sandbox> sandbox) {
  Turn turn = co_await take_turn(sandbox);
  if (sandbox->state_ == State::kRunning) co_return Result<void>();
  if (sandbox->state_ != State::kPaused) co_return not_running(*sandbox);
  if (sandbox->row_.released) co_return co_await sandbox->services_.bring_back(sandbox);
  co_return co_await go_on(sandbox);
}

Task<Result<void>> Pause::wake(std::shared_ptr<Sandbox> sandbox) {
  if (sandbox->state_ == State::kRunning) co_return Result<void>();
  bool wakes = sandbox->state_ == State::kCreating && sandbox->row_.released;
  bool sleeps = sandbox->state_ == State::kPaused || wakes;
  if (!sleeps || !sandbox->row_.auto_resume) co_return not_running(*sandbox);
  co_return co_await end(sandbox);
}

Task<Result<void>> Pause::begin_step(std::shared_ptr<Sandbox> sandbox, std::string label) {
  ATOLL_CO_TRY_VOID(co_await wake(sandbox));
  sandbox->lifetime_.touch();
  co_return co_await sandbox->checkpoint(std::move(label));
}

Task<Result<void>> Pause::take_up(std::shared_ptr<Sandbox> sandbox) {
  if (sandbox->row_.paused_at_ms == 0) co_return Result<void>();
  hold(*sandbox);
  auto frozen = co_await freeze(sandbox);
  co_return frozen;
}

void Pause::hold(Sandbox& sandbox) {
  sandbox.state_ = State::kPaused;
  sandbox.time_.hold();
  sandbox.lifetime_.hold();
  sandbox.contexts_.hold();
}

Task<Result<void>> Pause::store(Sandbox& sandbox, store::SandboxRow row) {
  auto update = [row](store::Catalog& catalog) {
    return catalog.sandboxes_of(row).set_paused(row);
  };
  auto stored = co_await sandbox.services_.ledger.run(update);
  co_return stored;
}

Task<Result<void>> Pause::freeze(std::shared_ptr<Sandbox> sandbox) {
  SandboxId id = sandbox->id();
  auto frozen = co_await sandbox->services_.driver.set_programs(id, isolate::Programs::kFrozen);
  if (frozen && sandbox->state_ != State::kPaused) co_return not_running(*sandbox);
  co_return frozen;
}

// After an error it is paused as before, if it is still there at all.
Task<Result<void>> Pause::go_on(std::shared_ptr<Sandbox> sandbox) {
  SandboxId id = sandbox->id();
  auto thawed = co_await sandbox->services_.driver.set_programs(id, isolate::Programs::kRun);
  if (!thawed) co_return thawed;
  crash_point("resume.thawed");
  store::SandboxRow row = row_after(*sandbox);
  auto stored = co_await store(*sandbox, row);
  crash_point("resume.row");
  if (sandbox->state_ != State::kPaused) co_return not_running(*sandbox);
  if (!stored) {
    auto frozen = co_await freeze(sandbox);
    if (!frozen) log_error("a paused sandbox runs", {{"sandbox", id.view()}, frozen.error()});
    co_return stored;
  }
  let_go(*sandbox, row);
  co_return stored;
}

store::SandboxRow Pause::row_after(const Sandbox& sandbox) {
  store::SandboxRow row = sandbox.row_;
  row.ttl_from_ms = ttl_from_after(row, to_milliseconds(sandbox.services_.clock.wall_now()));
  row.paused_at_ms = 0;
  row.released.reset();
  return row;
}

void Pause::let_go(Sandbox& sandbox, const store::SandboxRow& row) {
  int64_t now_ms = to_milliseconds(sandbox.services_.clock.wall_now());
  int64_t frozen_ms = std::max<int64_t>(0, now_ms - sandbox.row_.paused_at_ms);
  sandbox.row_.ttl_from_ms = row.ttl_from_ms;
  sandbox.row_.paused_at_ms = 0;
  sandbox.row_.released.reset();
  sandbox.state_ = State::kRunning;
  sandbox.time_.go_on();
  sandbox.lifetime_.go_on(row);
  sandbox.contexts_.go_on(static_cast<uint64_t>(frozen_ms));
  sandbox.due_.notify_all();
}

}  // namespace atl::sandbox
