#include "sandbox/sandboxes.h"

#include <algorithm>

#include "base/crash_point.h"
#include "base/log.h"
#include "egress/secret_text.h"
#include "sandbox/floor.h"
#include "sandbox/mark.h"
#include "sandbox/network.h"
#include "sandbox/pause.h"
#include "sandbox/secrets.h"
#include "sandbox/snapshots.h"
#include "sandbox/start_program.h"
#include "sandbox/trust.h"

namespace atl::sandbox {

namespace {

using Microseconds = std::chrono::microseconds;

Microseconds since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<Microseconds>(std::chrono::steady_clock::now() - start);
}

bool is_up(const Sandbox& sandbox) {
  return sandbox.state() == State::kRunning || sandbox.state() == State::kPaused;
}

// Between the choice of the wall and the launch, or in the life of the sandbox.
Error monitor_missing(Templates& templates, const store::SandboxRow& row) {
  std::string failure = templates.offered().sentry_failure;
  if (row.isolation == "gvisor" && !failure.empty())
    return Error(Code::kUnsupported, "gvisor was tried and does not run: " + failure)
        .with_reason("isolation_unavailable");
  return Error(Code::kUnavailable, "the image of what runs " + row.isolation + " is gone")
      .with_reason("image_missing");
}

bool has_volumes(const store::SandboxRow& row, const std::vector<WantedVolume>& wanted) {
  auto is_there = [&row](const WantedVolume& one) {
    return std::any_of(row.volumes.begin(), row.volumes.end(), [&one](const auto& use) {
      return use.name == one.name && use.path == one.path && use.read_only == one.read_only;
    });
  };
  return std::all_of(wanted.begin(), wanted.end(), is_there);
}

// Whether a create that allows it may answer with `held`, which has the name it asks for.
Result<void> check_usable(const Sandbox& held, const CreateSandbox& request) {
  auto taken = [&](const std::string& why, std::string_view reason) {
    return Error(Code::kConflict, "there is a sandbox of the name " + *request.name + why)
        .with_reason(reason)
        .with_field("name");
  };
  if (request.on_name_conflict == OnNameConflict::kError) return taken("", "name_taken");
  if (held.row().template_name != request.template_name)
    return taken(", of the template " + held.row().template_name, "name_conflict");
  auto wall = store::parse_isolation(held.row().isolation);
  if (request.isolation && (!wall || *wall < *request.isolation))
    return taken(", behind the weaker wall " + held.row().isolation, "name_conflict");
  if (!has_volumes(held.row(), request.volumes))
    return taken(", with other volumes", "name_conflict");
  if (is_up(held) || held.state() == State::kCreating) return {};
  return taken(", and it is " + std::string(state_name(held.state())), "name_taken");
}

// What the program of a template said is its owner's.
void log_failure(const SandboxId& id, const Error& error) {
  if (error.reason() == "start_failed")
    log_warning("create failed", {{"sandbox", id.view()}, {"reason", error.reason()}});
  else
    log_warning("create failed", {{"sandbox", id.view()}, error});
}

// Who leaves the choice to us gets the strongest; but files of a snapshot are those of a wall, and
// volumes are for jails.
void raise_wall(const Offered& offered, const store::TemplateDefaults& defaults,
                const CreateSandbox& request, store::SandboxRow& row) {
  bool is_free = !request.snapshot && request.volumes.empty();
  if (request.preference == Preference::kStrongest && is_free)
    row.isolation = isolation_name(strongest_wall(offered, defaults, row));
}

// The files of a snapshot are those of the wall that it was cut behind. Of an old one that is not
// stored; then the warden finds out.
Result<void> begin_with(const store::SnapshotRow& snapshot, CreateSandbox& request) {
  request.template_name = snapshot.template_name;
  request.sharing = Sharing::kOwn;
  auto wall = store::parse_isolation(snapshot.isolation);
  if (!wall) return {};
  if (request.isolation && *request.isolation > *wall)
    return Error(Code::kUnsupported, "the snapshot is of a sandbox behind " + snapshot.isolation +
                                         " and cannot be read behind " +
                                         std::string(isolation_name(*request.isolation)))
        .with_reason("not_behind_this_wall")
        .with_field("isolation");
  // For the jail nothing is looked up.
  if (*wall != store::Isolation::kJail) request.isolation = wall;
  return {};
}

// What is not said comes from the snapshot.
Result<void> inherit(const store::SnapshotRow& snapshot, const CreateSandbox& request,
                     store::SandboxRow& row) {
  row.snapshot = snapshot.id;
  row.inherited_bytes = snapshot.bytes;
  row.cpu_millis = request.cpu_millis.value_or(snapshot.cpu_millis);
  row.memory_bytes = request.memory_bytes.value_or(snapshot.memory_bytes);
  row.pids = request.pids.value_or(snapshot.pids);
  row.disk_bytes = request.disk_bytes.value_or(snapshot.disk_bytes);
  if (row.isolation != "jail" && row.disk_bytes != snapshot.disk_bytes)
    return Error(Code::kUnsupported, "a sandbox behind " + row.isolation +
                                         " has the disk of its snapshot, of " +
                                         std::to_string(snapshot.disk_bytes) + " bytes")
        .with_reason("not_behind_this_wall")
        .with_field("limits.disk_bytes");
  return check_disk(row);
}

uint64_t disk_of(const CreateSandbox& request, uint64_t of_template, const Admission& admission) {
  uint64_t wanted = request.disk_bytes.value_or(of_template);
  bool is_exact = request.disk_bytes && !request.takes_less_disk;
  return is_exact ? wanted : admission.fitting_disk(wanted);
}

}  // namespace

Sandboxes::Sandboxes(Services services, Admission& admission, Templates& templates)
    : services_(services),
      admission_(admission),
      templates_(templates),
      pool_(services_, admission, templates),
      volumes_(services_, admission),
      due_(services.executor),
      settled_(services.executor),
      kept_(services.executor) {
  services_.volumes = &volumes_;
  services_.bring_back = [this](std::shared_ptr<Sandbox> sandbox) {
    return bring_back(std::move(sandbox), Room::kOfOthers);
  };
}

Result<Sandboxes::Draft> Sandboxes::make_draft(
    store::TenantId tenant, const CreateSandbox& request,
    const std::optional<store::SnapshotRow>& snapshot) const {
  std::optional<store::Template> found;
  if (request.image) found = store::Template{.manifest = {}, .image = *request.image};
  if (snapshot) {
    // One that is gone meanwhile is not needed: all that must be there is the image.
    auto known = templates_.find_template(tenant, snapshot->template_name);
    found = store::Template{.manifest = {}, .image = snapshot->image};
    if (known && *known) found->manifest = (*known)->manifest;
  }
  if (!found) {
    ATOLL_TRY(found, templates_.find_template(tenant, request.template_name));
  }
  if (!found)
    return Error(Code::kNotFound, "there is no template " + request.template_name)
        .with_reason("template_not_found")
        .with_field("template");
  const auto& defaults = found->manifest.defaults;
  Offered offered;  // every host has the jail, so for that nothing is looked up
  bool is_plain = !request.isolation && request.preference == Preference::kWeakest;
  if (!is_plain || defaults.isolation != store::Isolation::kJail) offered = templates_.offered();
  ATOLL_TRY(store::Isolation wall, choose_wall(offered, defaults, request.isolation));
  store::SandboxRow row{.id = SandboxId::draw(), .tenant = tenant, .image = found->image};
  row.name = request.name;
  row.state = "creating";
  row.template_name = request.template_name;
  row.isolation = isolation_name(wall);
  row.cpu_millis = request.cpu_millis.value_or(defaults.cpu_millis);
  row.memory_bytes = request.memory_bytes.value_or(defaults.memory_bytes);
  row.pids = request.pids.value_or(defaults.pids);
  row.disk_bytes = disk_of(request, defaults.disk_bytes, admission_);
  row.output_bytes = request.output_bytes.value_or(defaults.output_bytes);
  row.open_files = request.open_files.value_or(defaults.open_files);
  row.disk_bytes_per_second =
      request.disk_bytes_per_second.value_or(defaults.disk_bytes_per_second);
  row.cpu_time_ms = request.cpu_time_ms.value_or(defaults.cpu_time_ms);
  row.on_oom = request.on_oom == isolate::OnOom::kEndSandbox ? "sandbox" : "exec";
  row.required_extras = request.required_extras;
  row.on_ttl = request.on_ttl;
  row.auto_resume = request.auto_resume;
  row.files_only_after_ms = request.files_only_after_ms.value_or(0);
  row.files_only_under_pressure = request.files_only_under_pressure;
  row.checkpoint = request.checkpoint;
  bool persists = defaults.persistence == store::Persistence::kPersistent;
  row.persistence = request.persistence.value_or(persists ? "persistent" : "ephemeral");
  row.ttl_ms = request.ttl_ms.value_or(defaults.ttl_ms);
  row.idle_ttl_ms = request.idle_ttl_ms.value_or(defaults.idle_ttl_ms);
  row.metadata = request.metadata;
  row.transient = request.transient;
  row.environment = egress::add_variables(request.environment, defaults.environment);
  row.user = request.user.value_or(defaults.user);
  row.directory = request.directory.value_or(defaults.directory);
  if (request.network) {
    row.network = *request.network;
  } else {
    ATOLL_TRY(row.network, template_network(found->manifest));
  }
  if (snapshot) ATOLL_TRY_VOID(inherit(*snapshot, request, row));
  row.created_at_ms = to_milliseconds(services_.clock.wall_now());
  row.ttl_from_ms = row.created_at_ms;
  row.generation = 1;
  fill_random(row.nonce);
  raise_wall(offered, defaults, request, row);
  ATOLL_TRY_VOID(check_wall(row));
  Draft draft{std::move(row)};
  if (!snapshot) draft.start = std::move(found->manifest.start);
  return draft;
}

Result<void> Sandboxes::ask_for_singleton(store::TenantId tenant, CreateSandbox& request) const {
  if (request.sharing == Sharing::kOwn || request.name || request.image) return {};
  if (!request.volumes.empty()) return {};
  ATOLL_TRY(auto found, templates_.find_template(tenant, request.template_name));
  if (!found || !found->manifest.pool_singleton) return {};
  // By its name everybody finds it, also after a restart.
  request.template_name = found->manifest.name;
  request.name = found->manifest.name;
  request.on_name_conflict = OnNameConflict::kUse;
  return {};
}

Task<Result<Created>> Sandboxes::create(store::TenantId tenant, CreateSandbox request) {
  auto begin = std::chrono::steady_clock::now();
  auto created = co_await make(tenant, std::move(request));
  if (!created)
    ++services_.tally.failed_creates;
  else if (created->origin == Created::Origin::kMade)
    services_.tally.create_time.add(since(begin));
  co_return created;
}

Task<Result<Created>> Sandboxes::make(store::TenantId tenant, CreateSandbox request) {
  auto begin = std::chrono::steady_clock::now();
  if (request.isolation)
    ATOLL_CO_TRY_VOID(choose_wall(templates_.offered(), {}, request.isolation));
  Secrets secrets(services_.driver, tenant);
  if (request.network) ATOLL_CO_TRY_VOID(co_await secrets.check(*request.network));
  std::optional<store::SnapshotRow> snapshot;
  if (request.snapshot) {
    ATOLL_CO_TRY(snapshot, co_await find_snapshot(services_.ledger, tenant, *request.snapshot));
    ATOLL_CO_TRY_VOID(begin_with(*snapshot, request));
  }
  ATOLL_CO_TRY_VOID(ask_for_singleton(tenant, request));
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> held, co_await find_conflict(tenant, request));
  if (held) co_return Created{held, {}, Created::Origin::kFound};
  ATOLL_CO_TRY(Draft draft, make_draft(tenant, request, snapshot));
  store::SandboxRow& row = draft.row;
  if (!request.network) ATOLL_CO_TRY_VOID(co_await secrets.check(row.network));
  std::optional<WarmIsolate> warm;
  // An isolate that waits has none mounted, and its layer goes with it.
  bool is_plain = request.volumes.empty() && row.persistence == "ephemeral" && !request.transient;
  if (!row.snapshot && is_plain) warm = pool_.take(row);
  ATOLL_CO_TRY(Reservation reservation, co_await reserve(row, warm));
  ATOLL_CO_TRY(row.volumes, volumes_.resolve(tenant, request.volumes));
  ATOLL_CO_TRY_VOID(check_wall(row));
  if (warm) {
    row.id = warm->id;
    row.nonce = warm->nonce;
  }
  row.sequence = services_.ledger.draw();
  auto sandbox = std::make_shared<Sandbox>(services_, row, std::move(reservation), due_);
  // Before anything is awaited: from here on the name and the volumes are its own.
  sandbox->volumes_ = volumes_.claim(row);
  enter(sandbox);
  store::SandboxRow stored = row;
  if (draft.start) unanswered_.insert(row.id);
  bool is_ready = warm && !warm->lender && warm->limits == limits_of(row).wall && !draft.start;
  if (is_ready) stored.state = "running";
  auto insert = [stored, key = request.idempotency_key](store::Catalog& catalog) {
    return key ? catalog.idempotency().insert_sandbox(*key, stored)
               : catalog.sandboxes_of(stored).insert(stored);
  };
  auto made = co_await services_.ledger.run(insert);
  if (!made) {
    free_name(*sandbox);
    all_.erase(row.id);
    unanswered_.erase(row.id);
    settled_.notify_all();
    if (warm) co_await pool_.discard(std::move(*warm));
    co_return std::move(made).error();
  }
  crash_point("create.row");
  CreateTimings timings{};
  timings.reserve = since(begin);
  timings.from_pool = warm && !warm->lender;
  if (warm)
    made = co_await start(sandbox, std::move(*warm), timings);
  else
    made = co_await start(sandbox, timings);
  if (made) made = co_await install_trust(services_, sandbox);
  if (made && draft.start) made = co_await start_asked(sandbox, *draft.start);
  if (made) {
    settled_.notify_all();
    co_return Created{sandbox, timings};
  }

  log_failure(row.id, made.error());
  auto undone = co_await delete_now(sandbox);
  if (!undone) log_warning("left for the sweep", {{"sandbox", row.id.view()}, undone.error()});
  co_return std::move(made).error();
}

// What a warm isolate holds grows into what the sandbox is promised. When there is no room, what
// only waits makes it, this one too.
Task<Result<Reservation>> Sandboxes::reserve(const store::SandboxRow& row,
                                             std::optional<WarmIsolate>& warm) {
  Limits limits = limits_of(row);
  while (true) {
    Result<Reservation> reserved = Reservation();
    if (warm) {
      auto grown = warm->reservation.resize_for(row.tenant, limits);
      if (grown)
        reserved = std::move(warm->reservation);
      else
        reserved = std::move(grown).error();
    } else {
      reserved = admission_.reserve(limits, row.tenant);
    }
    if (reserved) co_return reserved;
    bool makes_no_difference = reserved.error().reason() == "tenant_share_full" ||
                               reserved.error().code() != Code::kExhausted;
    if (makes_no_difference) {
      if (warm) co_await pool_.discard(std::move(*warm));
      co_return reserved;
    }
    if (warm) {
      bool gave_up = co_await pool_.give_up_one();
      if (gave_up) continue;
      co_await pool_.discard(std::move(*warm));
      warm.reset();
      continue;
    }
    bool made_room = co_await make_room(limits, Admission::Place::kNew);
    if (!made_room) co_return reserved;
  }
}

Task<Result<std::shared_ptr<Sandbox>>> Sandboxes::find_conflict(store::TenantId tenant,
                                                                const CreateSandbox& request) {
  std::shared_ptr<Sandbox> none;
  if (!request.name) co_return none;
  while (std::shared_ptr<Sandbox> held = find_named(tenant, *request.name)) {
    ATOLL_CO_TRY_VOID(check_usable(*held, request));
    if (is_up(*held) && !unanswered_.contains(held->id())) co_return held;
    co_await settled_.wait();
  }
  co_return none;
}

void Sandboxes::enter(std::shared_ptr<Sandbox> sandbox) {
  const store::SandboxRow& row = sandbox->row();
  if (row.name && row.state != "deleting") names_.emplace(Name(row.tenant, *row.name), row.id);
  auto owned = services_.outputs.set_owner(row.id, row.tenant);
  if (!owned)
    log_warning("its output is of nobody's share", {{"sandbox", row.id.view()}, owned.error()});
  all_.emplace(row.id, std::move(sandbox));
}

void Sandboxes::free_name(const Sandbox& sandbox) {
  const store::SandboxRow& row = sandbox.row();
  auto found = row.name ? names_.find(Name(row.tenant, *row.name)) : names_.end();
  if (found != names_.end() && found->second == row.id) names_.erase(found);
}

Task<Result<void>> Sandboxes::start(std::shared_ptr<Sandbox> sandbox, WarmIsolate isolate,
                                    CreateTimings& timings) {
  auto begin = std::chrono::steady_clock::now();
  Mark starting(starting_, sandbox->id(), settled_);
  isolate::WallLimits wanted = limits_of(sandbox->row()).wall;
  bool poised = isolate.lender != nullptr;
  if (poised) {
    auto begun = co_await pool_.begin(isolate);
    if (!begun) co_return co_await start(sandbox, timings);  // another one of that id
    ATOLL_CO_TRY_VOID(co_await store_running(sandbox));
  }
  if (isolate.limits != wanted) {
    ATOLL_CO_TRY_VOID(co_await services_.driver.change_limits(isolate.id, wanted));
    ATOLL_CO_TRY_VOID(co_await store_running(sandbox));
  }
  timings.launch = since(begin);
  ATOLL_CO_TRY_VOID(co_await apply_network(services_, sandbox->row()));
  timings.from_zygote = isolate.agent.waiting && isolate.agent.waiting->copied;
  sandbox->attach(std::move(isolate.agent));
  co_return set_running(*sandbox);
}

Task<Result<void>> Sandboxes::start(std::shared_ptr<Sandbox> sandbox, CreateTimings& timings) {
  const store::SandboxRow& row = sandbox->row();
  Mark starting(starting_, row.id, settled_);
  Basis basis = basis_of(templates_, row);
  if (row.isolation != "jail" && !basis.monitor) co_return monitor_missing(templates_, row);
  isolate::LaunchSpec spec{
      row.id,        row.image,    limits_of(row).wall, row.nonce,
      basis.toolbox, row.snapshot, basis.monitor,       places_of(row.volumes)};
  if (row.persistence == "persistent" || row.released) spec.layer_end = isolate::LayerEnd::kKept;
  auto begin = std::chrono::steady_clock::now();
  // A copy would not have seen the files of a snapshot, a volume or a layer that was there before.
  std::optional<WarmAgent> copied;
  bool can_copy = !row.snapshot && row.generation == 1 && row.volumes.empty();
  if (can_copy && basis.monitor && spec.layer_end == isolate::LayerEnd::kWithIsolate)
    copied = co_await pool_.restore(row.template_name, spec);
  if (!copied) ATOLL_CO_TRY_VOID(co_await services_.driver.launch(spec));
  crash_point("create.launched");
  auto told = co_await apply_network(services_, row);
  // One that was there before does not end because egress is away, which is told when it is back.
  if (!told && !row.restoring && !row.released) co_return told;
  timings.launch = since(begin);
  if (can_copy && !basis.monitor) copied = co_await pool_.copy(row, basis);
  timings.from_zygote = copied.has_value();
  if (copied)
    sandbox->attach(std::move(*copied));
  else
    ATOLL_CO_TRY_VOID(co_await sandbox->attach());
  crash_point("create.attached");
  begin = std::chrono::steady_clock::now();
  ATOLL_CO_TRY_VOID(co_await store_running(sandbox));
  timings.attach = since(begin);
  co_return set_running(*sandbox);
}

Task<Result<void>> Sandboxes::start_asked(std::shared_ptr<Sandbox> sandbox,
                                          store::StartProgram wanted) {
  ATOLL_CO_TRY_VOID(co_await start_program(services_, sandbox, wanted));
  crash_point("create.ready");
  unanswered_.erase(sandbox->id());
  co_return co_await store_running(sandbox);
}

Task<Result<void>> Sandboxes::store_running(std::shared_ptr<Sandbox> sandbox) {
  if (unanswered_.contains(sandbox->id())) co_return Result<void>();
  auto store_state = [row = sandbox->row()](store::Catalog& catalog) {
    return catalog.sandboxes_of(row).set_state(row.tenant, row.id, "running", "");
  };
  co_return co_await services_.ledger.run(store_state);
}

Result<void> Sandboxes::set_running(Sandbox& sandbox) {
  if (sandbox.state() != State::kCreating)
    return Error(Code::kUnavailable, "the sandbox ended while it was created")
        .with_reason("isolate_failed");
  sandbox.set_running();
  crash_point("create.running");
  std::optional<SteadyTime> end = sandbox.lifetime().deadline();
  if (end && *end < wake_) due_.notify_all();
  return {};
}

std::shared_ptr<Sandbox> Sandboxes::find(store::TenantId tenant, SandboxId id) const {
  auto found = all_.find(id);
  if (found == all_.end() || found->second->row().tenant != tenant || retired_.contains(id))
    return nullptr;
  return found->second;
}

std::shared_ptr<Sandbox> Sandboxes::find_named(store::TenantId tenant,
                                               const std::string& name) const {
  auto found = names_.find(Name(tenant, name));
  return found == names_.end() ? nullptr : find(tenant, found->second);
}

Task<Result<void>> Sandboxes::change(std::shared_ptr<Sandbox> sandbox, ChangeSandbox request) {
  Pause::Turn turn = co_await Pause::take_turn(sandbox);
  auto changed = co_await change_sandbox(services_, sandbox, std::move(request));
  for (auto end : {sandbox->lifetime().deadline(), sandbox->lifetime().memory_end()})
    if (end && *end < wake_) due_.notify_all();
  if (may_release(*sandbox, Need::kPressure)) due_.notify_all();
  co_return changed;
}

Task<Result<std::vector<store::SandboxRow>>> Sandboxes::list(store::TenantId tenant,
                                                             store::SandboxQuery wanted) {
  auto read = [tenant, wanted](store::Catalog& catalog) {
    return catalog.sandboxes().list(tenant, wanted);
  };
  auto rows = co_await services_.ledger.run(read);
  if (rows) std::erase_if(*rows, [this](const auto& row) { return retired_.contains(row.id); });
  co_return rows;
}

}  // namespace atl::sandbox
