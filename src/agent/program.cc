#include "agent/program.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/file.h"
#include "linux/pidfd.h"

namespace atl::agent {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

constexpr microseconds kShortestPause{5'000};
constexpr microseconds kLongestPause{1'000'000};

uint64_t micros_of(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
}

uint64_t count_cpus() {
  cpu_set_t cpus[16];  // 16,384 of them
  if (sched_getaffinity(0, sizeof cpus, cpus) != 0) return 1;
  return static_cast<uint64_t>(std::max(1, CPU_COUNT_S(sizeof cpus, cpus)));
}

uint64_t cpu_count() {
  static const uint64_t kCount = count_cpus();
  return kCount;
}

// Even with every cpu at work the limit is not passed before the next check.
microseconds pause_until(uint64_t left_us) {
  microseconds pause(left_us / cpu_count());
  return std::clamp(pause, kShortestPause, kLongestPause);
}

std::optional<uint64_t> leaf_count(const Leaf& leaf, const char* file, std::string_view key) {
  auto text = leaf.read(file);
  return text ? find_count(*text, key) : std::nullopt;
}

}  // namespace

Program::Program(Leaf leaf, const Start& start, const Counts& before)
    : leaf_(leaf),
      timeout_ms_(start.timeout_ms),
      cpu_limit_us_(uint64_t{start.cpu_time_ms} * 1000),
      interrupts_group_(start.control != ControlMode::kNone),
      before_(before) {}

void Program::launched(pid_t pid, Fd pidfd) {
  pid_ = pid;
  first_pid_ = static_cast<uint32_t>(pid);
  pidfd_ = std::move(pidfd);
  // Now, because the file of a process that has ended belongs to the host's root. Not every kernel
  // has it.
  auto opened = open_file("/proc/" + std::to_string(pid) + "/io", O_RDONLY);
  if (opened) storage_bytes_ = std::move(*opened);
  start_clocks();
}

void Program::begin(const Beginning& begins, const Counts& before) {
  timeout_ms_ = begins.timeout_ms;
  cpu_limit_us_ = uint64_t{begins.cpu_time_ms} * 1000;
  before_ = before;
  auto all = leaf_.times();
  LeafTimes used = all ? *all : leaf_.live_times();
  user_us_before_ = used.user_us;
  system_us_before_ = used.system_us;
  start_clocks();
}

void Program::start_clocks() {
  SteadyTime now = steady_clock::now();
  started_at_ = now;
  frozen_ = SteadyTime::duration(0);
  forgiven_us_ = seen_us_ = 0;
  seen_at_ = now;
  if (timeout_ms_ > 0) deadline_ = now + std::chrono::milliseconds(timeout_ms_);
  if (cpu_limit_us_ > 0) cpu_check_at_ = now + pause_until(cpu_limit_us_);
}

void Program::let_go() {
  pid_.reset();
  pidfd_.reset();
  storage_bytes_.reset();
  deadline_.reset();
  cpu_check_at_.reset();
}

void Program::read_storage_bytes(Death& death) const {
  if (!storage_bytes_) return;
  auto text = read_all(storage_bytes_.get());
  if (!text) return;
  death.read_bytes = find_count(*text, "read_bytes:").value_or(0);
  death.written_bytes = find_count(*text, "write_bytes:").value_or(0);
}

SteadyTime::duration Program::reaped(const Death& death, Counters& counters, Exit& exit) {
  let_go();
  Counts now = counters.read();
  bool leaf_counts = counters.of_leaves();
  bool memory_kill = hit_by_memory_kill(now, leaf_counts);
  bool signaled = WIFSIGNALED(death.wait_status);
  int status = signaled ? WTERMSIG(death.wait_status) : WEXITSTATUS(death.wait_status);
  exit.ending = signaled ? Ending::kSignaled : Ending::kExited;
  exit.status = static_cast<uint8_t>(status);
  exit.cause = signaled ? cause_of(status, memory_kill) : Cause::kProgram;
  exit.read_bytes = death.read_bytes;
  exit.written_bytes = death.written_bytes;
  read_cpu_times(death.usage, exit);
  read_peak_memory(death.usage, counters, exit);
  if (ended_for_) exit.limits_hit |= limit_bit_of(*ended_for_);
  if (memory_kill) exit.limits_hit |= bit(LimitBit::kMemory);
  if (counters.refused_a_fork(before_, leaf_)) exit.limits_hit |= bit(LimitBit::kPids);
  if (cpu_limit_us_ > 0 && exit.user_us + exit.system_us >= cpu_limit_us_)
    exit.limits_hit |= bit(LimitBit::kCpuTime);
  if (exit.cause != Cause::kMemory) return frozen_;
  if (!ended_for_) counters.explain_kill();
  kill();
  return frozen_;
}

Cause Program::cause_of(int signal_number, bool memory_kill) const {
  if ((client_signals_ >> (signal_number - 1) & 1) != 0) return Cause::kClient;
  if (signal_number != SIGKILL) return Cause::kProgram;
  if (ended_for_) return *ended_for_;
  return memory_kill ? Cause::kMemory : Cause::kProgram;
}

// Where leaves do not count for themselves, a kill of the sandbox that nobody else has claimed
// since this one started may be its own.
bool Program::hit_by_memory_kill(const Counts& now, bool leaf_counts) const {
  auto own = leaf_counts ? leaf_count(leaf_, "memory.events", "oom_kill") : std::nullopt;
  if (own) return *own > 0;
  return now.memory_kills + before_.explained_kills > before_.memory_kills + now.explained_kills;
}

// The leaf knows of every process that was ever in it, the main one only of those it waited for.
void Program::read_cpu_times(const rusage& usage, Exit& exit) const {
  LeafTimes waited_for = {micros_of(usage.ru_utime), micros_of(usage.ru_stime)};
  LeafTimes used = leaf_.times().value_or(waited_for);
  exit.user_us = used.user_us - std::min(used.user_us, user_us_before_);
  exit.system_us = used.system_us - std::min(used.system_us, system_us_before_);
  uint64_t of_user = std::min(exit.user_us, forgiven_us_);
  exit.user_us -= of_user;
  exit.system_us -= std::min(exit.system_us, forgiven_us_ - of_user);
}

void Program::read_peak_memory(const rusage& usage, const Counters& counters, Exit& exit) const {
  std::optional<uint64_t> own;
  if (counters.of_leaves())
    if (auto text = leaf_.read("memory.peak")) own = parse_count(*text);
  auto all = own ? std::nullopt : counters.peak_memory_bytes();
  exit.peak_scope = all ? PeakScope::kSandbox : PeakScope::kExec;
  if (!own && !all) own = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  exit.peak_memory_bytes = own ? *own : *all;
}

void Program::signal(uint8_t signal_number) {
  if (pid_) client_signals_ |= uint64_t{1} << (signal_number - 1);
  if (signal_number == SIGKILL) return kill();
  // What a terminal does: a program that waits for its child, as in system(3), ignores the signal,
  // and the child must get it.
  bool for_group = interrupts_group_ && pid_ && signal_number == SIGINT;
  if (for_group) (void)::kill(-*pid_, SIGINT);
  // A process that has just ended takes no signal any more; its status will say how it ended.
  if (!for_group && pidfd_) (void)linux::send_signal(pidfd_.get(), signal_number);
}

void Program::end(Cause cause) {
  if (!ended_for_) ended_for_ = cause;
  deadline_.reset();
  cpu_check_at_.reset();
  kill();
}

void Program::kill() {
  killed_ = true;
  auto killed = leaf_.kill();
  // Without the leaf the main process can still be ended; the rest is the warden's, by the group
  // above.
  if (!killed && pidfd_) (void)linux::send_signal(pidfd_.get(), SIGKILL);
}

std::optional<SteadyTime> Program::deadline() const {
  if (!deadline_ || !cpu_check_at_) return deadline_ ? deadline_ : cpu_check_at_;
  return std::min(*deadline_, *cpu_check_at_);
}

void Program::check_deadline(SteadyTime now) {
  if (deadline_ && now >= *deadline_) end(Cause::kWallTime);
  if (cpu_check_at_ && now >= *cpu_check_at_) check_cpu_time(now);
}

void Program::put_off(SteadyTime since, SteadyTime now) {
  // Also of one that was started while nothing ran.
  since = std::max(since, started_at_);
  auto frozen = now - since;
  frozen_ += frozen;
  if (deadline_) *deadline_ += frozen;
  if (cpu_check_at_) *cpu_check_at_ += frozen;
  forgive_cpu_time(since, now);
}

uint64_t Program::used_us() const {
  auto all = leaf_.times();
  LeafTimes times = all ? *all : leaf_.live_times();
  uint64_t used = times.user_us + times.system_us;
  return used - std::min(used, user_us_before_ + system_us_before_ + forgiven_us_);
}

void Program::forgive_cpu_time(SteadyTime since, SteadyTime now) {
  auto watched = std::chrono::duration_cast<microseconds>(since - seen_at_);
  uint64_t had = static_cast<uint64_t>(std::max<int64_t>(0, watched.count())) * cpu_count();
  uint64_t used = used_us();
  uint64_t most = seen_us_ + had;
  if (used > most) forgiven_us_ += used - most;
  seen_us_ = std::min(used, most);
  seen_at_ = now;
}

void Program::check_cpu_time(SteadyTime now) {
  uint64_t used = used_us();
  seen_us_ = used;
  seen_at_ = now;
  if (used >= cpu_limit_us_) return end(Cause::kCpuTime);
  cpu_check_at_ = now + pause_until(cpu_limit_us_ - used);
}

}  // namespace atl::agent
