#include "sandbox/warm_pool.h"

#include <algorithm>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.h"
#include "sandbox/floor.h"
#include "sandbox/laid_down.h"
#include "sandbox/warm_agent.h"

namespace atl::sandbox {

namespace {

constexpr std::chrono::seconds kRest{1};
constexpr std::chrono::milliseconds kBreath{10};
constexpr std::chrono::seconds kFailurePause{5};
// What an isolate in which nothing runs but an interpreter is counted with.
constexpr uint64_t kIdleMemoryBytes = 16ull << 20;
constexpr uint64_t kIdleSentryBytes = 64ull << 20;
constexpr uint64_t kIdleMachineBytes = 256ull << 20;

Limits idle_limits(const WarmIsolate& isolate) {
  const isolate::WallLimits& limits = isolate.limits;
  Limits idle{.wall = limits, .output_bytes = 0};
  const auto& monitor = isolate.basis.monitor;
  bool machine = monitor && monitor->kind == isolate::Monitor::Kind::kMachine;
  uint64_t most = machine ? kIdleMachineBytes : monitor ? kIdleSentryBytes : kIdleMemoryBytes;
  idle.wall.memory_bytes = std::min(limits.memory_bytes, most);
  idle.wall.disk_bytes = 0;
  return idle;
}

isolate::WallLimits default_limits(const store::TemplateDefaults& defaults) {
  isolate::WallLimits limits{.cpu_millis = defaults.cpu_millis,
                             .memory_bytes = defaults.memory_bytes,
                             .pids = defaults.pids,
                             .disk_bytes = defaults.disk_bytes};
  limits.open_files = defaults.open_files;
  limits.disk_bytes_per_second = defaults.disk_bytes_per_second;
  return limits;
}

// What cannot be changed once an isolate is up.
bool can_become(const WarmIsolate& isolate, const store::SandboxRow& row, const Basis& basis) {
  isolate::WallLimits wanted = limits_of(row).wall;
  if (basis.monitor && isolate.limits != wanted) return false;
  return isolate.basis == basis && isolate.limits.open_files == wanted.open_files &&
         isolate.limits.on_oom == wanted.on_oom && wanted.required_extras == 0;
}

bool is_machine(const Basis& basis) {
  return basis.monitor && basis.monitor->kind == isolate::Monitor::Kind::kMachine;
}

// One that no sandbox becomes: others begin with its memory. It has no stream.
bool is_laid_down(const WarmIsolate& isolate) {
  return is_machine(isolate.basis) && !isolate.agent.link;
}

bool is_standing(const WarmIsolate& isolate) { return !is_laid_down(isolate); }

size_t count_standing(const std::deque<WarmIsolate>& all) {
  return static_cast<size_t>(std::count_if(all.begin(), all.end(), is_standing));
}

// Whose memory it can begin with.
std::optional<SandboxId> find_lender(const std::deque<WarmIsolate>& all,
                                     const WarmIsolate& wanted) {
  auto lends = [&wanted](const WarmIsolate& one) {
    return is_laid_down(one) && one.basis == wanted.basis && one.limits == wanted.limits;
  };
  auto found = std::find_if(all.begin(), all.end(), lends);
  return found == all.end() ? std::nullopt : std::optional(found->id);
}

std::optional<WarmIsolate> take_laid_down(std::deque<WarmIsolate>& all) {
  auto found = std::find_if(all.begin(), all.end(), is_laid_down);
  if (found == all.end()) return std::nullopt;
  std::optional<WarmIsolate> taken(std::move(*found));
  all.erase(found);
  return taken;
}

// What a machine that is launched begins with, if another was laid down for that.
struct Begun {
  Fd memory = {};
  std::optional<SnapshotId> disk = {};
};

Task<Result<Begun>> begin_with(Services& services, SandboxId laid_down) {
  Begun begun;
  ATOLL_CO_TRY(begun.memory, co_await borrow_memory(services, laid_down));
  SnapshotId disk = SnapshotId::draw();
  auto cut = co_await services.driver.cut(laid_down, disk, 0);
  if (!cut) co_return std::move(cut).error();
  begun.disk = disk;
  co_return begun;
}

// No row knows it: the next start would remove it too.
Task<void> forget_disk(Services& services, std::optional<SnapshotId> disk) {
  if (!disk) co_return;
  auto removed = co_await services.driver.remove_snapshot(*disk);
  if (!removed) log_warning("the disk of a machine is left", {removed.error()});
}

uint64_t microseconds_since(SteadyTime start) {
  auto elapsed = std::chrono::steady_clock::now() - start;
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count());
}

}  // namespace

Basis basis_of(Templates& templates, const store::SandboxRow& row) {
  Basis basis{row.image, templates.toolbox()};
  auto wall = store::parse_isolation(row.isolation);
  if (wall && *wall != store::Isolation::kJail)
    basis.monitor = monitor_of(templates.offered(), *wall);
  return basis;
}

WarmPool::WarmPool(Services& services, Admission& admission, Templates& templates)
    : services_(services),
      admission_(admission),
      templates_(templates),
      zygotes_(services.executor, services.clock),
      changed_(services.executor) {}

std::optional<WarmIsolate> WarmPool::take(const store::SandboxRow& row) {
  auto found = pools_.find(row.template_name);
  if (found == pools_.end() || found->second.floor == 0) return std::nullopt;
  Pool& pool = found->second;
  pool.demand.count(services_.clock.steady_now());
  changed_.notify_all();
  Basis basis = basis_of(templates_, row);
  auto fits = [&](const WarmIsolate& isolate) {
    return is_standing(isolate) && can_become(isolate, row, basis);
  };
  auto chosen = std::find_if(pool.ready.begin(), pool.ready.end(), fits);
  ++(chosen == pool.ready.end() ? counts_.misses : counts_.hits);
  if (chosen == pool.ready.end()) return std::nullopt;
  std::optional<WarmIsolate> taken(std::move(*chosen));
  pool.ready.erase(chosen);
  return taken;
}

Task<bool> WarmPool::give_up_one() {
  for (auto& [name, pool] : pools_) {
    if (pool.ready.empty()) continue;
    auto chosen = std::find_if(pool.ready.begin(), pool.ready.end(), is_standing);
    if (chosen == pool.ready.end()) chosen = pool.ready.begin();
    WarmIsolate oldest = std::move(*chosen);
    pool.ready.erase(chosen);
    pool.not_before = std::chrono::steady_clock::now() + kFailurePause;
    co_await discard(std::move(oldest));
    co_return true;
  }
  co_return false;
}

Task<void> WarmPool::discard(WarmIsolate isolate) {
  if (isolate.agent.link) isolate.agent.link->close();
  co_await remove(isolate.id);
}

Task<void> WarmPool::remove(SandboxId id) {
  auto removed = co_await services_.driver.remove(id);
  // The next start removes it: no row knows it.
  if (!removed)
    log_warning("an isolate of the pool stays", {{"sandbox", id.view()}, removed.error()});
}

size_t WarmPool::size() const {
  size_t all = 0;
  for (const auto& [name, pool] : pools_) all += count_standing(pool.ready);
  return all;
}

std::vector<Digest> WarmPool::images() const {
  std::vector<Digest> used;
  for (const auto& [name, pool] : pools_)
    for (const WarmIsolate& isolate : pool.ready) used.push_back(isolate.basis.image);
  return used;
}

Task<void> WarmPool::run(Walls walls) {
  while (true) {
    auto found = find_templates();
    if (!found) log_warning("templates cannot be read", {found.error()});
    memory_is_short_ = admission_.memory_is_short();
    std::vector<std::string> names;
    for (const auto& [name, pool] : pools_)
      if (pool.basis && pool.basis->monitor.has_value() == (walls == Walls::kMachines))
        names.push_back(name);
    bool busy = false;
    for (const std::string& name : names) {
      bool tended = co_await tend(name);
      busy = busy || tended;
    }
    if (busy) continue;
    auto until = std::chrono::steady_clock::now() + kRest;
    bool taken = co_await changed_.wait_until(until);
    if (!taken) continue;
    // What was taken is about to be used: the next one must not be in its way.
    boost::asio::steady_timer pause(services_.executor, kBreath);
    auto token = boost::asio::as_tuple(boost::asio::use_awaitable);
    co_await pause.async_wait(token);
  }
}

Result<void> WarmPool::find_templates() {
  for (auto& [name, pool] : pools_) pool.floor = 0;
  // Those that everybody may use; one that is not built is not built for this.
  ATOLL_TRY(std::vector<KnownTemplate> all, templates_.list(store::kLocalTenant));
  std::optional<Digest> toolbox = templates_.toolbox();
  Offered offered = templates_.offered();
  for (const KnownTemplate& known : all) {
    const store::TemplateManifest& manifest = known.manifest;
    bool wants = known.image && !manifest.pool_singleton && manifest.pool_warm > 0;
    auto wall = choose_wall(offered, manifest.defaults);
    if (wants && wall) {
      Pool& pool = pools_[known.name];
      pool.floor = manifest.pool_warm;
      pool.ceiling = manifest.pool_max;
      pool.basis = Basis{*known.image, toolbox};
      pool.basis->monitor = monitor_of(offered, *wall);
      pool.program = waiting_start(manifest);
    }
  }
  return {};
}

size_t WarmPool::wanted(Pool& pool) const {
  size_t demand = pool.demand.lately(services_.clock.steady_now());
  if (pool.floor == 0 || memory_is_short_) return 0;
  return std::min(pool.floor + demand, pool.ceiling);
}

std::optional<WarmIsolate> WarmPool::take_spare(Pool& pool) {
  auto is_old = [&pool](const WarmIsolate& isolate) { return isolate.basis != pool.basis; };
  auto chosen = std::find_if(pool.ready.begin(), pool.ready.end(), is_old);
  if (chosen == pool.ready.end() && count_standing(pool.ready) > wanted(pool))
    chosen = std::find_if(pool.ready.begin(), pool.ready.end(), is_standing);
  if (chosen == pool.ready.end() && wanted(pool) == 0) chosen = pool.ready.begin();
  if (chosen == pool.ready.end()) return std::nullopt;
  std::optional<WarmIsolate> spare(std::move(*chosen));
  pool.ready.erase(chosen);
  return spare;
}

Task<bool> WarmPool::tend(std::string name) {
  Pool& pool = pools_[name];                           // none is ever erased
  bool copies = pool.program && !pool.basis->monitor;  // memory is not lent to machines
  if (pool.floor > 0 && copies && zygotes_.wants(name, *pool.basis)) {
    co_await make_zygote(name, *pool.basis);
    co_return true;
  }
  if (std::optional<WarmIsolate> spare = take_spare(pool)) {
    co_await discard(std::move(*spare));
    co_return true;
  }
  size_t want = wanted(pool);
  size_t laid_down = pool.ready.size() - count_standing(pool.ready);
  bool lends = want > 0 && pool.program && is_machine(*pool.basis);
  if (lends && laid_down == 0 && zygotes_.wants(name, *pool.basis)) {
    auto made = co_await launch(name, Program::kOfZygote);
    if (made)
      pool.ready.push_front(std::move(*made));
    else
      zygotes_.fail(name, *pool.basis, made.error());
    co_return true;
  }
  if (count_standing(pool.ready) == want || std::chrono::steady_clock::now() < pool.not_before)
    co_return false;
  SteadyTime begin = std::chrono::steady_clock::now();
  auto launched = co_await launch(name, Program::kCopied);
  if (launched) {
    ++counts_.launches;
    counts_.launch_us += microseconds_since(begin);
    pool.ready.push_back(std::move(*launched));
    co_return true;
  }
  ++counts_.failures;
  pool.not_before = std::chrono::steady_clock::now() + kFailurePause;
  log_warning("the pool could not be filled", {{"template", name}, launched.error()});
  co_return false;
}

Task<void> WarmPool::make_zygote(std::string name, Basis basis) {
  auto zygote = co_await launch(name, Program::kOfZygote);
  Result<void> made = Error(Code::kUnsupported, "the agent starts no program that waits");
  if (!zygote)
    made = std::move(zygote).error();
  else if (zygote->agent.waiting)
    made = co_await zygotes_.make(name, zygote->basis, zygote->agent.link,
                                  zygote->agent.waiting->number);
  if (!made) zygotes_.fail(name, basis, made.error());
  if (zygote) co_await discard(std::move(*zygote));
}

Task<std::optional<WarmAgent>> WarmPool::copy(store::SandboxRow row, Basis basis) {
  auto pool = pools_.find(row.template_name);
  if (pool == pools_.end() || !pool->second.program) co_return std::nullopt;
  Imprint imprint = zygotes_.find(row.template_name, basis);
  if (!imprint) co_return std::nullopt;
  std::optional<agent::Start> program = pool->second.program;
  program->open_files = limits_of(row).wall.open_files;
  CopyOf of{imprint, CopyOf::Rehearsal::kNone};
  auto agent = co_await warm_agent(services_, row.id, row.nonce, program, of);
  if (agent) co_return std::move(*agent);
  zygotes_.fail(row.template_name, basis, agent.error());
  co_return std::nullopt;
}

Task<Result<WarmIsolate>> WarmPool::launch(std::string name, Program program) {
  ATOLL_CO_TRY(auto found, templates_.find(store::kLocalTenant, name));
  if (!found || !found->image) co_return Error(Code::kNotFound, "the template is gone");
  WarmIsolate isolate{.id = SandboxId::draw(), .basis = {*found->image, templates_.toolbox()}};
  isolate.basis.monitor = pools_[name].basis->monitor;
  isolate.limits = default_limits(found->manifest.defaults);
  fill_random(isolate.nonce);
  ATOLL_CO_TRY(isolate.reservation, admission_.reserve(idle_limits(isolate)));
  isolate::LaunchSpec spec{isolate.id, isolate.basis.image, isolate.limits, isolate.nonce,
                           isolate.basis.toolbox};
  spec.monitor = isolate.basis.monitor;
  bool lies_down = spec.monitor && program == Program::kOfZygote;
  std::optional<SandboxId> lender;
  if (program == Program::kCopied) lender = find_lender(pools_[name].ready, isolate);
  Result<void> ready;
  Begun begun;
  if (lender) {
    auto lent = co_await begin_with(services_, *lender);
    if (lent)
      begun = std::move(*lent);
    else
      ready = std::move(lent).error();
  }
  spec.snapshot = begun.disk;
  if (ready) ready = co_await services_.driver.launch(spec);
  bool is_there = ready.ok();
  co_await forget_disk(services_, begun.disk);
  std::optional<agent::Start> start = waiting_start(found->manifest);
  Imprint imprint;
  if (program == Program::kCopied)
    imprint = zygotes_.find(name, isolate.basis);
  else if (start && !lies_down)
    start = zygote_start(std::move(*start));
  using Rehearsal = CopyOf::Rehearsal;
  CopyOf of{imprint, spec.monitor ? Rehearsal::kOften : Rehearsal::kAhead};
  if (lies_down) of.rehearsal = Rehearsal::kOnly;
  of.memory = begun.memory.get();
  if (ready) {
    auto agent = co_await warm_agent(services_, isolate.id, isolate.nonce, start, of);
    if (agent)
      isolate.agent = std::move(*agent);
    else
      ready = std::move(agent).error();
  }
  if (ready && lies_down) {
    std::shared_ptr<isolate::AgentLink> link = std::move(isolate.agent.link);
    ready = co_await lay_down(services_, isolate.id, link);
  } else if (ready && spec.monitor) {  // an idle one would use the processor
    ready = co_await services_.driver.set_programs(isolate.id, isolate::Programs::kFrozen);
  }
  if (ready) co_return isolate;
  if (imprint || lender) zygotes_.fail(name, isolate.basis, ready.error());
  // Those that follow boot, until another is laid down.
  std::optional<WarmIsolate> lender_gone;
  if (lender) lender_gone = take_laid_down(pools_[name].ready);
  if (lender_gone) co_await discard(std::move(*lender_gone));
  if (is_there) co_await remove(isolate.id);
  co_return std::move(ready).error();
}

}  // namespace atl::sandbox
