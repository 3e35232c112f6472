#include "agent/exec_table.h"

#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "agent/probe.h"
#include "base/crash_point.h"
#include "base/file.h"
#include "base/ids.h"

namespace atl::agent {
namespace {

// In a machine, while anything runs; as exact as it is short.
constexpr std::chrono::milliseconds kLook{250};
constexpr std::chrono::seconds kStandstill{1};

SteadyTime now() { return std::chrono::steady_clock::now(); }

void take_earlier(std::optional<SteadyTime>& earliest, std::optional<SteadyTime> time) {
  if (time && (!earliest || *time < *earliest)) earliest = time;
}

}  // namespace

ExecTable::ExecTable(Parts parts)
    : cgroup_(std::move(parts.cgroup)),
      launcher_(parts.launcher),
      counters_(std::move(parts.counters)),
      oom_(std::move(parts.oom)),
      layer_(std::move(parts.layer)),
      freeze_(std::move(parts.freeze)),
      place_(parts.place),
      limit_watch_(std::move(parts.limits)) {}

Result<void> ExecTable::probe(Fd socket) {
  Leaf leaf(cgroup_.get(), 0);
  ATOLL_TRY(Launched launched, start_probe(launcher_, leaf, std::move(socket)));
  keep(0, Remains(leaf, std::move(launched.stdout_pipe), std::move(launched.stderr_pipe),
                  Joining::kRefused));
  return {};
}

bool ExecTable::start(uint32_t number, std::string_view payload) {
  if (!ExecId::from_number(number)) return false;
  auto start = decode_start(payload);
  if (!start) return false;
  launch(number, *start, payload);
  return true;
}

void ExecTable::launch(uint32_t number, const Start& start, std::string_view payload) {
  notice_standstill(now());  // a machine may be stopped before this start is done
  if (execs_.size() + remains_.size() >= kMaxExecs) sweep();
  bool full = execs_.size() + remains_.size() >= kMaxExecs;
  bool left_over = remains_.contains(number);
  Leaf leaf(cgroup_.get(), number);
  Counts before = counters_.read();
  Exec& exec = execs_.try_emplace(number, leaf, start, before).first->second;
  if (full || left_over) {
    exec.launched(full ? Error(Code::kExhausted, "too many execs", EAGAIN)
                       : Error(Code::kConflict, "mkdir cgroup", EEXIST));
    exec.take_remains();  // none of its own: the leaf of that number, if there is one, is another's
    return;
  }
  auto launched = launcher_.launch(leaf, start, payload, launcher_.null_device());
  crash_point("launched");
  bool failed = !launched.ok();
  // What earlier execs left running may be all that the sandbox may have.
  if (failed && counters_.refused_a_fork(before, leaf))
    launched = Error(Code::kExhausted, kNoRoomForProcesses, EAGAIN);
  exec.launched(std::move(launched));
  if (!failed) return;
  // A start that failed half-way may have left a process that nobody knows.
  exec.program().kill();
  retire(exec);
}

Result<Launched> ExecTable::join(uint32_t number, const Start& start, const Streams& streams) {
  Exec* exec = find(number);
  auto left = remains_.find(number);
  Joining joining = Joining::kRefused;
  if (left != remains_.end())
    joining = left->second.joining();
  else if (exec != nullptr)
    joining = exec->program().joining();
  if (joining == Joining::kRefused) return Error(Code::kNotFound, "join the exec", ESRCH);
  return launcher_.launch_beside(Leaf(cgroup_.get(), number), start, streams);
}

Exec* ExecTable::find(uint32_t number) {
  auto found = execs_.find(number);
  return found == execs_.end() ? nullptr : &found->second;
}

bool ExecTable::obey(const Frame& frame) {
  Exec* exec = find(frame.number);
  if (exec == nullptr) return frame.type != FrameType::kStart || start(frame.number, frame.payload);
  if (!exec->obey(frame, counters_)) return false;
  go_on(*exec);
  return true;
}

Result<Fd> ExecTable::open_control(const OpenControl& open) {
  Exec* exec = find(open.exec);
  if (exec == nullptr) return Error(Code::kNotFound, "open control", ESRCH);
  return exec->open_control(open.begins, counters_.read());
}

void ExecTable::go_on(Exec& exec) {
  exec.settle(launcher_.null_device());
  retire(exec);
}

void ExecTable::forget(uint32_t number) {
  auto found = execs_.find(number);
  if (found == execs_.end()) return;
  Exec& exec = found->second;
  if (exec.state() != Exec::State::kEnded) {
    exec.program().kill();
    keep(number, Remains(exec.program().leaf(), Fd(), Fd(), Joining::kRefused));
  }
  execs_.erase(found);
}

void ExecTable::retire(Exec& exec) {
  auto remains = exec.take_remains();
  if (!remains) return;
  keep(exec.program().leaf().number(), std::move(*remains));
}

void ExecTable::keep(uint32_t number, Remains remains) {
  remains_.insert_or_assign(number, std::move(remains));
  unswept_.push_back(number);
}

void ExecTable::sweep() {
  for (uint32_t number : std::exchange(unswept_, {})) {
    auto found = remains_.find(number);
    if (found == remains_.end()) continue;
    found->second.try_to_remove(now());
    found->second.discard_output(launcher_.null_device());
    if (found->second.gone()) remains_.erase(found);
  }
}

bool ExecTable::resume(const std::vector<ExecOffsets>& welcomed) {
  std::map<uint32_t, const ExecOffsets*> by_number;
  for (const ExecOffsets& offsets : welcomed) {
    Exec* exec = find(offsets.exec);
    if (exec == nullptr || !exec->resume(offsets)) return false;
    if (!by_number.emplace(offsets.exec, &offsets).second) return false;
  }
  std::vector<uint32_t> left_out;
  for (auto& [number, exec] : execs_) {
    if (by_number.contains(number)) {
      go_on(exec);
    } else {
      left_out.push_back(number);
    }
  }
  for (uint32_t number : left_out) forget(number);
  return true;
}

std::vector<ExecOffsets> ExecTable::offsets() const {
  std::vector<ExecOffsets> all;
  for (const auto& [number, exec] : execs_) all.push_back(exec.offsets());
  return all;
}

std::optional<std::string> ExecTable::next_report() {
  auto next = execs_.upper_bound(last_reported_);
  for (size_t i = 0; i < execs_.size(); ++i, ++next) {
    if (next == execs_.end()) next = execs_.begin();
    auto frame = next->second.next_report();
    if (frame) crash_point("report");
    if (!frame) continue;
    last_reported_ = next->first;
    return frame;
  }
  return std::nullopt;
}

void ExecTable::add_watches(PollSet& polls) const {
  for (const auto& [number, exec] : execs_) exec.add_watches(polls);
  for (const auto& [number, remains] : remains_) remains.add_watches(polls);
  oom_.add_watches(polls);
  freeze_.add_watches(polls);
  if (launcher_.spawner_fd() >= 0) polls.add(launcher_.spawner_fd(), POLLIN, {Source::kSpawner});
}

void ExecTable::handle(Watch watch) {
  switch (watch.source) {
    case Source::kLeftPipe:
    case Source::kLeftLeaf:
      return handle_remains(watch);
    case Source::kOomNotice:
      return oom_.noticed(now());
    case Source::kFrozen:
      return freeze_noticed();
    case Source::kRebirth:
      for (auto& [number, exec] : execs_) exec.handle(watch.source, launcher_.null_device());
      return;
    case Source::kSpawner:
      // It speaks only when spoken to, and that is waited for; so this is its end.
      return launcher_.spawner_ended();
    default:
      break;
  }
  Exec* exec = find(watch.exec);
  if (exec == nullptr) return;
  exec->handle(watch.source, launcher_.null_device());
  retire(*exec);
}

void ExecTable::handle_remains(Watch watch) {
  auto found = remains_.find(watch.exec);
  if (found == remains_.end()) return;
  if (watch.source == Source::kLeftPipe)
    found->second.discard_output(launcher_.null_device());
  else
    found->second.try_to_remove(now());
  if (found->second.gone()) remains_.erase(found);
}

Exec* ExecTable::find_by_pid(pid_t pid) {
  auto is_its_own = [pid](auto& entry) { return entry.second.program().pid() == pid; };
  auto found = std::find_if(execs_.begin(), execs_.end(), is_its_own);
  return found == execs_.end() ? nullptr : &found->second;
}

std::optional<ReapedChild> ExecTable::reap_one() {
  siginfo_t info = {};
  int looked = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL);
  pid_t pid = info.si_pid;
  if (looked != 0 || pid == 0) return std::nullopt;
  crash_point("reap");
  Exec* exec = find_by_pid(pid);
  Death death;
  if (exec != nullptr) exec->program().read_storage_bytes(death);
  if (wait4(pid, &death.wait_status, WNOHANG | __WALL, &death.usage) != pid) return std::nullopt;
  if (layer_.pid() == pid) layer_answered(layer_.ended(death.wait_status));
  if (exec != nullptr) {
    if (freeze_.frozen_since()) exec->program().put_off(*freeze_.frozen_since(), now());
    if (limit_watch_) limit_watch_->look_at_end(leaves());
    bool asks = exec->reaped(death, counters_, launcher_.null_device());
    if (asks) layer_.ask(exec->program().leaf().number());
    retire(*exec);
  }
  return ReapedChild{pid, death.wait_status};
}

void ExecTable::layer_answered(const LayerProbe::Answer& answer) {
  for (uint32_t number : answer.execs) {
    Exec* exec = find(number);
    if (exec == nullptr) continue;
    exec->layer_checked(answer.full, launcher_.null_device());
    retire(*exec);
  }
}

void ExecTable::freeze_noticed() {
  SteadyTime current = now();
  auto since = freeze_.noticed(current);
  if (since) put_off(*since, current);
}

void ExecTable::put_off(SteadyTime since, SteadyTime current) {
  for (auto& [number, exec] : execs_) exec.program().put_off(since, current);
}

void ExecTable::notice_standstill(SteadyTime current) {
  if (place_ == AgentPlace::kJail) return;
  if (looks_at_ && current > *looks_at_ + kStandstill) {
    put_off(*looks_at_, current);
    // Set anew, the quota has no debt: it counts that time as used, and nothing would run for as
    // long. A machine whose processor nobody shares has none.
    auto quota = read_file_at(cgroup_.get(), "cpu.max");
    if (quota) (void)write_file_at(cgroup_.get(), "cpu.max", *quota);
  }
  looks_at_ = current + kLook;
}

std::vector<Leaf> ExecTable::leaves() {
  std::vector<Leaf> all;
  for (auto& [number, exec] : execs_) all.push_back(exec.program().leaf());
  for (auto& [number, remains] : remains_) all.push_back(remains.leaf());
  return all;
}

// As the kernel of a host does: the one that uses most ends.
void ExecTable::look_at_limits(SteadyTime current) {
  auto worst = limit_watch_->look(leaves(), current);
  if (!worst) return;
  if (Exec* exec = find(*worst)) exec->program().end(Cause::kMemory);
  auto left = remains_.find(*worst);
  if (left != remains_.end()) left->second.kill();
}

void ExecTable::end_all_for_memory() {
  for (auto& [number, exec] : execs_) exec.program().end(Cause::kMemory);
  for (auto& [number, remains] : remains_) remains.kill();
}

std::optional<SteadyTime> ExecTable::next_deadline() {
  sweep();
  std::optional<SteadyTime> earliest;
  if (!freeze_.frozen_since())
    for (auto& [number, exec] : execs_) take_earlier(earliest, exec.program().deadline());
  for (const auto& [number, remains] : remains_) take_earlier(earliest, remains.retry_at());
  take_earlier(earliest, oom_.check_at());
  take_earlier(earliest, layer_.deadline());
  if (!execs_.empty()) take_earlier(earliest, looks_at_);
  if (limit_watch_ && !execs_.empty()) take_earlier(earliest, limit_watch_->looks_at());
  return earliest;
}

void ExecTable::check_deadlines() {
  SteadyTime current = now();
  notice_standstill(current);
  if (oom_.check_at() && oom_.check(counters_.read().memory_kills, current)) end_all_for_memory();
  if (limit_watch_ && !execs_.empty()) look_at_limits(current);
  layer_.check_deadline(current);
  if (!freeze_.frozen_since())
    for (auto& [number, exec] : execs_) exec.program().check_deadline(current);
  for (auto remains = remains_.begin(); remains != remains_.end();) {
    auto retry_at = remains->second.retry_at();
    if (retry_at && *retry_at <= current) remains->second.try_to_remove(current);
    remains = remains->second.gone() ? remains_.erase(remains) : std::next(remains);
  }
}

}  // namespace atl::agent
