#include "sandbox/warm_pool.h"

#include <algorithm>

#include <boost/asio/steady_timer.hpp>

#include "async/spawn.h"
#include "base/log.h"
#include "sandbox/floor.h"
#include "sandbox/rehearsal.h"
#include "sandbox/warm_agent.h"

namespace atl::sandbox {

namespace {

constexpr std::chrono::seconds kRest{1};
constexpr std::chrono::milliseconds kBreath{10};
constexpr std::chrono::milliseconds kBreathOfMachines{500};  // each takes a processor to itself
constexpr std::chrono::milliseconds kBeforeRest{500};
constexpr std::chrono::seconds kFailurePause{5};
constexpr std::chrono::seconds kUnderstudyTime{90};
// What an isolate in which nothing runs but an interpreter is counted with.
constexpr uint64_t kIdleMemoryBytes = 16ull << 20;
constexpr uint64_t kIdleSentryBytes = 64ull << 20;
// A machine of its own, or the pages that it does not share with the one that was laid down.
constexpr uint64_t kBootedMachineBytes = 256ull << 20;
constexpr uint64_t kIdleMachineBytes = 40ull << 20;

bool is_machine(const Basis& basis) {
  return basis.monitor && basis.monitor->kind == isolate::Monitor::Kind::kMachine;
}

uint64_t idle_bytes(const Basis& basis, const LaidDown* lender) {
  if (!basis.monitor) return kIdleMemoryBytes;
  if (!is_machine(basis)) return kIdleSentryBytes;
  return lender ? kIdleMachineBytes : kBootedMachineBytes;
}

Limits idle_limits(const isolate::WallLimits& limits, uint64_t most) {
  Limits idle{.wall = limits, .output_bytes = 0};
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

// While it waited: nobody reads what its agent says.
bool has_died(const WarmIsolate& isolate) {
  return isolate.agent.link && !isolate.agent.link->is_up();
}

// What cannot be changed once an isolate is up.
bool can_become(const WarmIsolate& isolate, const store::SandboxRow& row, const Basis& basis) {
  isolate::WallLimits wanted = limits_of(row).wall;
  if (basis.monitor && isolate.limits != wanted) return false;
  if (has_died(isolate)) return false;
  return isolate.basis == basis && isolate.limits.open_files == wanted.open_files &&
         isolate.limits.on_oom == wanted.on_oom && wanted.required_extras == 0;
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
  auto fits = [&](const WarmIsolate& isolate) { return can_become(isolate, row, basis); };
  auto chosen = std::find_if(pool.ready.begin(), pool.ready.end(), fits);
  ++(chosen == pool.ready.end() ? counts_.misses : counts_.hits);
  if (chosen == pool.ready.end()) {
    bool begins = pool.poised && fits(*pool.poised);
    return begins ? std::exchange(pool.poised, std::nullopt) : std::nullopt;
  }
  std::optional<WarmIsolate> taken(std::move(*chosen));
  pool.ready.erase(chosen);
  return taken;
}

Task<bool> WarmPool::give_up_one() {
  for (auto& [name, pool] : pools_) {
    if (pool.ready.empty()) continue;
    WarmIsolate oldest = std::move(pool.ready.front());
    pool.ready.pop_front();
    pool.not_before = std::chrono::steady_clock::now() + kFailurePause;
    co_await discard(std::move(oldest));
    co_return true;
  }
  for (auto& [name, pool] : pools_) {
    bool dropped = co_await drop_poised(pool);
    if (dropped) co_return true;
  }
  auto lends = [](const auto& entry) { return entry.second.laid_down != nullptr; };
  auto found = std::find_if(pools_.begin(), pools_.end(), lends);
  if (found == pools_.end()) co_return false;
  found->second.not_before = std::chrono::steady_clock::now() + kFailurePause;
  co_await drop_laid_down(found->first);
  co_return true;
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
  for (const auto& [name, pool] : pools_) all += pool.ready.size();
  return all;
}

std::vector<Digest> WarmPool::images() const {
  std::vector<Digest> used;
  for (const auto& [name, pool] : pools_) {
    for (const WarmIsolate& isolate : pool.ready) used.push_back(isolate.basis.image);
    if (pool.laid_down) used.push_back(pool.laid_down->isolate.basis.image);
    if (pool.poised) used.push_back(pool.poised->basis.image);
  }
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
    auto breath = walls == Walls::kMachines ? kBreathOfMachines : kBreath;
    boost::asio::steady_timer pause(services_.executor, breath);
    co_await wait(pause);
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
  auto is_old = [&pool](const WarmIsolate& isolate) {
    return isolate.basis != pool.basis || has_died(isolate);
  };
  auto chosen = std::find_if(pool.ready.begin(), pool.ready.end(), is_old);
  if (chosen == pool.ready.end() && pool.ready.size() > wanted(pool)) chosen = pool.ready.begin();
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
  bool cared = co_await tend_laid_down(name);
  if (cared) co_return true;
  if (std::chrono::steady_clock::now() < pool.not_before) co_return false;
  if (pool.ready.size() == wanted(pool)) co_return co_await tend_poised(name);
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

Task<std::optional<WarmAgent>> WarmPool::restore(std::string name, isolate::LaunchSpec spec) {
  auto pool = pools_.find(name);
  if (pool == pools_.end()) co_return std::nullopt;
  std::shared_ptr<LaidDown> lender = pool->second.laid_down;
  Basis basis{spec.image, spec.toolbox, spec.monitor};
  if (!lender || !lender->lends_to(basis, spec.limits)) co_return std::nullopt;
  auto agent = co_await begin_with(services_, lender, spec, CopyOf::Rehearsal::kNone);
  if (agent) co_return std::move(*agent);
  co_await mistrust(name, lender, agent.error());
  co_return std::nullopt;
}

Task<void> WarmPool::mistrust(std::string name, std::shared_ptr<LaidDown> lender, Error why) {
  zygotes_.fail(name, lender->isolate.basis, why);
  if (pools_[name].laid_down == lender) co_await drop_laid_down(name);
}

Task<void> WarmPool::drop_laid_down(std::string name) {
  std::shared_ptr<LaidDown> dropped = std::exchange(pools_[name].laid_down, nullptr);
  co_await drop_poised(pools_[name]);
  if (dropped) co_await sandbox::discard(services_, dropped);
}

Task<bool> WarmPool::drop_poised(Pool& pool) {
  std::optional<WarmIsolate> dropped = std::exchange(pool.poised, std::nullopt);
  if (dropped) co_await discard(std::move(*dropped));
  co_return dropped.has_value();
}

Task<bool> WarmPool::tend_poised(std::string name) {
  Pool& pool = pools_[name];
  std::shared_ptr<LaidDown> lender = pool.laid_down;
  if (pool.poised || !lender || wanted(pool) == 0) co_return false;
  WarmIsolate isolate{.id = SandboxId::draw(), .basis = lender->isolate.basis};
  isolate.limits = lender->isolate.limits;
  fill_random(isolate.nonce);
  Limits idle = idle_limits(isolate.limits, idle_bytes(isolate.basis, lender.get()));
  auto reserved = admission_.reserve(idle);
  if (!reserved) co_return false;  // what waits for nobody in particular makes no room
  isolate.reservation = std::move(*reserved);
  auto poised = co_await poise(services_, lender, std::move(isolate));
  if (!poised) {
    pool.not_before = std::chrono::steady_clock::now() + kFailurePause;
    log_warning("the pool could not be filled", {{"template", name}, poised.error()});
    co_return false;
  }
  pool.poised = std::move(*poised);
  // While it was being made its memory may have been dropped.
  if (pool.laid_down != lender) co_await drop_poised(pool);
  co_return true;
}

Task<Result<void>> WarmPool::begin(WarmIsolate& isolate) {
  auto agent = co_await begin_poised(services_, isolate);
  if (!agent) {
    // It may have died while it waited, which says nothing about the memory.
    log_warning("a poised isolate did not begin", {{"sandbox", isolate.id.view()}, agent.error()});
    isolate.agent.link->close();
    co_await remove(isolate.id);
    co_return std::move(agent).error();
  }
  isolate.agent = std::move(*agent);
  co_return Result<void>();
}

Task<bool> WarmPool::tend_laid_down(std::string name) {
  Pool& pool = pools_[name];
  std::shared_ptr<LaidDown> found = pool.laid_down;
  bool lends = wanted(pool) > 0 && pool.program && pool.basis->monitor;
  if (found && (!lends || found->isolate.basis != pool.basis)) {
    co_await drop_laid_down(name);
    co_return true;
  }
  bool needed = lends && (!found || found->is_worn(services_.clock.steady_now()));
  bool may = std::chrono::steady_clock::now() >= pool.not_before;
  if (!needed || !may || !zygotes_.wants(name, *pool.basis)) co_return false;
  Basis basis = *pool.basis;
  auto made = co_await make_laid_down(name);
  if (!made) {
    zygotes_.fail(name, basis, made.error());
    co_return true;
  }
  co_await drop_laid_down(name);
  pool.laid_down = std::make_shared<LaidDown>(std::move(*made));
  co_return true;
}

Task<Result<LaidDown>> WarmPool::make_laid_down(std::string name) {
  ATOLL_CO_TRY(WarmIsolate isolate, co_await launch(name, Program::kOfZygote));
  SandboxId id = isolate.id;
  Result<LaidDown> made = Error(Code::kUnsupported, "there is nothing to lay it down with");
  Result<void> ready;
  std::optional<agent::Start> program = pools_[name].program;
  std::shared_ptr<isolate::AgentLink> link = isolate.agent.link;
  boost::asio::steady_timer patience(services_.executor, kUnderstudyTime);
  patience.async_wait([link](const boost::system::error_code& error) {
    if (!error) link->close();
  });
  bool understudied = is_machine(isolate.basis) && program && isolate.agent.waiting;
  if (understudied) ready = co_await start_understudy(*link, std::move(*program));
  patience.cancel();
  if (ready)
    made = co_await lay_down(services_, std::move(isolate));
  else
    made = std::move(ready).error();
  if (!made) {
    co_await remove(id);
    co_return made;
  }
  uint64_t bytes = made->memory_bytes();
  Limits counted = idle_limits(made->isolate.limits, bytes);
  counted.wall.memory_bytes = bytes;
  auto resized = made->isolate.reservation.resize(counted);
  if (!resized) log_warning("a laid-down machine is counted with too little", {resized.error()});
  log_info("machine laid down", {{"template", name}, {"bytes", bytes}});
  co_return made;
}

Task<Result<WarmIsolate>> WarmPool::launch(std::string name, Program program) {
  ATOLL_CO_TRY(auto found, templates_.find(store::kLocalTenant, name));
  if (!found || !found->image) co_return Error(Code::kNotFound, "the template is gone");
  Pool& pool = pools_[name];
  WarmIsolate isolate{.id = SandboxId::draw(), .basis = {*found->image, templates_.toolbox()}};
  isolate.basis.monitor = pool.basis->monitor;
  isolate.limits = default_limits(found->manifest.defaults);
  fill_random(isolate.nonce);
  std::shared_ptr<LaidDown> lender;
  bool copies = program == Program::kCopied && pool.laid_down;
  if (copies && pool.laid_down->lends_to(isolate.basis, isolate.limits)) lender = pool.laid_down;
  Limits idle = idle_limits(isolate.limits, idle_bytes(isolate.basis, lender.get()));
  ATOLL_CO_TRY(isolate.reservation, admission_.reserve(idle));
  isolate::LaunchSpec spec{isolate.id, isolate.basis.image, isolate.limits, isolate.nonce,
                           isolate.basis.toolbox};
  spec.monitor = isolate.basis.monitor;
  if (lender) {
    auto agent = co_await begin_with(services_, lender, spec, CopyOf::Rehearsal::kOften);
    if (!agent) co_await mistrust(name, lender, agent.error());
    if (!agent) co_return std::move(agent).error();
    isolate.agent = std::move(*agent);
  } else {
    ATOLL_CO_TRY(isolate.agent, co_await start_anew(name, spec, program));
  }
  if (!spec.monitor || program == Program::kOfZygote) co_return isolate;
  // It comes to rest by itself in a moment (microvm/kept_program.h), before the next one is begun.
  boost::asio::steady_timer moment(services_.executor, kBeforeRest);
  co_await wait(moment);
  co_return isolate;
}

Task<Result<WarmAgent>> WarmPool::start_anew(std::string name, isolate::LaunchSpec spec,
                                             Program program) {
  SandboxId id = spec.id;
  isolate::Nonce nonce = spec.nonce;
  Basis basis{spec.image, spec.toolbox, spec.monitor};
  std::optional<agent::Start> start = pools_[name].program;
  bool is_zygote = program == Program::kOfZygote;
  if (is_zygote && basis.monitor) spec.purpose = isolate::Purpose::kLender;
  if (is_zygote && !basis.monitor && start) start = zygote_start(std::move(*start));
  ATOLL_CO_TRY_VOID(co_await services_.driver.launch(std::move(spec)));
  Imprint imprint;
  if (!is_zygote) imprint = zygotes_.find(name, basis);
  using Rehearsal = CopyOf::Rehearsal;
  CopyOf of{imprint, basis.monitor ? Rehearsal::kOften : Rehearsal::kAhead};
  auto agent = co_await warm_agent(services_, id, nonce, start, of);
  if (agent) co_return agent;
  if (imprint) zygotes_.fail(name, basis, agent.error());
  co_await remove(id);
  co_return agent;
}

}  // namespace atl::sandbox
