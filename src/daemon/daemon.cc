#include "daemon/daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "api/e2b/door.h"
#include "api/health.h"
#include "api/metrics.h"
#include "api/openapi.h"
#include "api/v1/archive.h"
#include "api/v1/artifacts.h"
#include "api/v1/contexts.h"
#include "api/v1/diff.h"
#include "api/v1/egress.h"
#include "api/v1/execs.h"
#include "api/v1/files.h"
#include "api/v1/fork.h"
#include "api/v1/keys.h"
#include "api/v1/limits.h"
#include "api/v1/pause.h"
#include "api/v1/ports.h"
#include "api/v1/receipt.h"
#include "api/v1/replay.h"
#include "api/v1/rollback.h"
#include "api/v1/run.h"
#include "api/v1/sandboxes.h"
#include "api/v1/seals.h"
#include "api/v1/snapshots.h"
#include "api/v1/templates.h"
#include "api/v1/tenants.h"
#include "api/v1/usage.h"
#include "api/v1/volumes.h"
#include "async/as_tuple.h"
#include "async/heartbeat.h"
#include "async/spawn.h"
#include "base/clock.h"
#include "base/crash_point.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/host_watch.h"
#include "daemon/rounds.h"
#include "isolate/jail_driver.h"
#include "linux/lock_file.h"
#include "sandbox/wall_trials.h"
#include "store/key_file.h"
#include "store/lost_found.h"
#include "store/pairing.h"

namespace atl::daemon {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds kAdoptPause{50};
constexpr std::chrono::seconds kDatabasePause{1};  // between two times that its log is written back
constexpr std::chrono::hours kLostFoundPause{6};
constexpr uint64_t kArtifactBudgetBytes = 4ull << 30;  // of sandboxes that are gone
constexpr uint64_t kFreeSpaceFloorBytes = 1ull << 30;
// So that what programs print alone keeps nobody from creating.
constexpr uint64_t kOutputFloorBytes = kFreeSpaceFloorBytes + (64ull << 20);
// Limits are ceilings that few sandboxes reach, so more may be promised than is there.
constexpr uint64_t kMemoryOvercommit = 4;
constexpr std::chrono::seconds kHealthTime{1};  // in which egress says how it is

sandbox::Budget make_budget(const Options& options) {
  auto physical = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                  static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  uint64_t memory = options.memory_budget_bytes;
  uint64_t disk = options.disk_budget_bytes;
  return {.sandboxes = options.max_sandboxes,
          .memory_bytes = memory ? memory : physical * kMemoryOvercommit,
          .disk_bytes = disk ? disk : sandbox::kNoDiskBudget,
          .free_space_floor_bytes = kFreeSpaceFloorBytes,
          .state_directory = options.state_directory,
          .host_memory_bytes = physical};
}

Task<void> pause_for(std::chrono::milliseconds time) {
  auto executor = co_await asio::this_coro::executor;
  asio::steady_timer timer(executor, time);
  co_await timer.async_wait(kAsTuple);
}

struct Served {
  sandbox::Ledger& ledger;
  sandbox::Sandboxes& sandboxes;
  sandbox::Snapshots& snapshots;
  sandbox::Seals& seals;
  sandbox::TemplateBuilds& builds;
  sandbox::Idempotency& idempotency;
  api::Router& router;
  sandbox::WallTrials& trials;
  asio::io_context& context;
  std::optional<Error>& failure;  // why it stops
};

sandbox::WallTrials::Plan trial_plan(const Options& options) {
  sandbox::WallTrials::Plan plan{.machine_time = std::chrono::seconds(options.kvm_trial_seconds)};
  if (options.gvisor_platform) plan.platforms = {*options.gvisor_platform};
  return plan;
}

// Their pool begins once it is known what they have here: it would have to begin anew.
Task<void> tend_machines(sandbox::WallTrials& trials, sandbox::WarmPool* pool) {
  co_await trials.try_newest();
  auto executor = co_await asio::this_coro::executor;
  // detached: the daemon's own life, as this
  spawn(executor, trials.run());
  if (pool != nullptr) co_await pool->run(sandbox::WarmPool::Walls::kMachines);
}

// Until the warden answers there is nothing to serve; the supervisor is starting it.
Task<Result<void>> adopt_all(Served served) {
  while (true) {
    auto adopted = co_await served.sandboxes.adopt();
    if (adopted) adopted = co_await served.snapshots.adopt();
    if (adopted || adopted.error().reason() == "database_mismatch") co_return adopted;
    log_info("waiting for the warden", {adopted.error()});
    co_await pause_for(kAdoptPause);
  }
}

// From here on what no row names is what a crash left.
Task<void> finish_pairing(sandbox::Ledger& ledger) {
  if (ledger.pairing() == store::Pairing::kPaired) co_return;
  auto finished = co_await ledger.finish_pairing();
  if (!finished) log_error("the next start does it again", {finished.error()});
}

// So that a log that is left beside an older file is known for what it is.
Task<void> write_back_database(sandbox::Ledger& ledger) {
  auto write_back = [](store::Catalog& catalog) { return catalog.epoch().write_back(); };
  while (true) {
    // What fails is what Rounds find, too.
    (void)co_await ledger.run(write_back);
    co_await pause_for(kDatabasePause);
  }
}

// What was set aside a week ago, here and in the pool.
Task<void> sweep_lost_found(isolate::Driver& driver, std::string directory) {
  SystemClock clock;
  while (true) {
    auto swept = store::sweep_lost_found(directory, to_milliseconds(clock.wall_now()));
    if (swept) swept = co_await driver.sweep_lost_found();
    if (!swept) log_warning("lost+found is not swept", {swept.error()});
    co_await pause_for(kLostFoundPause);
  }
}

Task<void> take_up(Served served, const Options& options, std::function<void()> on_adopted) {
  auto& [ledger, sandboxes, snapshots, seals, builds, idempotency, router, trials, context,
         failure] = served;
  auto adopted = co_await adopt_all(served);
  if (!adopted) {
    failure = std::move(adopted).error();
    context.stop();
    co_return;
  }
  if (ledger.pairing() != store::Pairing::kSettingAside) co_await finish_pairing(ledger);
  on_adopted();
  auto loaded = co_await builds.load();
  if (!loaded) log_error("templates cannot be read", {loaded.error()});
  // Before anything is sealed: of what was not synced when power was lost, nothing is used again.
  auto collected = co_await seals.collect();
  if (loaded && collected) co_await finish_pairing(ledger);
  router.set_ready();
  log_info("ready");
  auto executor = co_await asio::this_coro::executor;
  auto filling = sandboxes.pool().run(sandbox::WarmPool::Walls::kJails);
  auto machines = tend_machines(trials, options.warm_pool ? &sandboxes.pool() : nullptr);
  // detached: the daemon's own life, as this
  if (options.warm_pool) spawn(executor, std::move(filling));
  spawn(executor, std::move(machines));
  while (true) {
    co_await sandboxes.wait_due();
    co_await sandboxes.sweep();
    co_await snapshots.sweep();
    co_await builds.sweep();
    co_await idempotency.sweep();
  }
}

void watch_state(const Served& served, isolate::Driver& driver, std::string directory) {
  // detached: the daemon's own life, both
  spawn(served.context.get_executor(), write_back_database(served.ledger));
  // detached: as the one before
  spawn(served.context.get_executor(), sweep_lost_found(driver, std::move(directory)));
}

Result<void> how_it_ended(const std::optional<Error>& failure) {
  if (failure) return *failure;
  log_info("stopped");
  return {};
}

Task<void> stop_on_signal(http::Server& server, http::TlsListener* tls) {
  auto executor = co_await asio::this_coro::executor;
  asio::signal_set signals(executor, SIGTERM, SIGINT);
  co_await signals.async_wait(kAsTuple);
  log_info("stopping");
  if (tls != nullptr) tls->stop();
  server.stop();
}

Task<void> serve(http::Server& server, asio::io_context& context) {
  co_await server.run();
  context.stop();
}

void add_routes_of_sandboxes(api::Router& router, sandbox::Sandboxes& sandboxes) {
  api::v1::add_sandbox_routes(router, sandboxes);
  api::v1::add_exec_routes(router, sandboxes);
  api::v1::add_context_routes(router, sandboxes);
  api::v1::add_file_routes(router, sandboxes);
  api::v1::add_archive_routes(router, sandboxes);
  api::v1::add_artifact_routes(router, sandboxes);
  api::v1::add_run_route(router, sandboxes);
  api::v1::add_receipt_route(router, sandboxes);
  api::v1::add_egress_route(router, sandboxes);
  api::v1::add_usage_routes(router, sandboxes);
}

// For tests/wire, which compares the routes that are served with the contract.
Result<void> publish_routes(const Options& options, const api::Router& router) {
  return replace_file(options.run_directory + "/daemon/routes", router.listing(), 0644);
}

Result<void> publish_address(const Options& options, unsigned short port) {
  std::string host = options.listen_address.find(':') == std::string::npos
                         ? options.listen_address
                         : "[" + options.listen_address + "]";
  std::string address = host + ":" + std::to_string(port);
  log_info("listening", {{"address", address}});
  return replace_file(options.run_directory + "/daemon/address", address + "\n", 0644);
}

Result<void> publish(const Options& options, const api::Router& router, unsigned short port) {
  ATOLL_TRY_VOID(publish_routes(options, router));
  return publish_address(options, port);
}

Result<std::unique_ptr<sandbox::Tenants>> open_tenants(sandbox::Sandboxes& sandboxes,
                                                       const std::string& own_directory) {
  ATOLL_TRY(auto settings, store::TenantSettings::open(own_directory + "/atoll.db"));
  return sandbox::Tenants::create(sandboxes, std::move(settings));
}

Result<std::unique_ptr<http::Server>> listen(asio::io_context& context, const Options& options,
                                             api::Router& router) {
  auto handler = [&router](http::Exchange& exchange) { return router.serve(exchange); };
  http::Rules rules{options.http_limits, handler, api::Router::refuse};
  return http::Server::listen(context, options.listen_address, options.listen_port, rules);
}

void add_figures(api::Router& router, http::Server& server, isolate::JailDriver& driver,
                 sandbox::Sandboxes& sandboxes, const sandbox::Admission& admission) {
  auto open_connections = [&server] { return server.open_connections(); };
  auto dropped_connections = [&server] { return server.dropped_connections(); };
  auto egress_health = [&egress = driver.egress()] {
    return egress.check(std::chrono::steady_clock::now() + kHealthTime);
  };
  api::add_metrics_route(
      router, {sandboxes, admission, open_connections, dropped_connections, egress_health});
  api::v1::add_limits_route(router, sandboxes, admission);
}

void add_server_routes(api::Router& router, const api::Health& health) {
  api::add_health_routes(router, health);
  api::add_openapi_route(router);
}

void add_state_routes(api::Router& router, sandbox::Sandboxes& sandboxes,
                      sandbox::Snapshots& snapshots, sandbox::Seals& seals,
                      sandbox::Idempotency& idempotency) {
  api::v1::add_pause_routes(router, sandboxes);
  api::v1::add_volume_routes(router, sandboxes);
  api::v1::add_snapshot_routes(router, sandboxes, snapshots, seals);
  api::v1::add_seal_routes(router, seals, idempotency);
  api::v1::add_fork_route(router, sandboxes, snapshots);
  api::v1::add_rollback_route(router, sandboxes, snapshots);
  api::v1::add_diff_routes(router, sandboxes, snapshots);
  api::v1::add_replay_route(router, sandboxes, snapshots);
}

// As getHost() of E2B's clients names it, which has no other place for the port.
std::string port_domain(const Options& options) {
  constexpr unsigned short kHttps = 443;
  unsigned short port = options.tls_listen.port;
  if (options.domain.empty() || port == 0 || port == kHttps) return options.domain;
  return options.domain + ":" + std::to_string(port);
}

Result<std::unique_ptr<http::TlsListener>> listen_for_tls(asio::io_context& context,
                                                          const Options& options,
                                                          http::Server& server) {
  if (options.tls_listen.address.empty()) return std::unique_ptr<http::TlsListener>();
  ATOLL_TRY(auto listener,
            http::TlsListener::listen(context, options.tls_listen, options.tls_files, server));
  log_info("listening for TLS", {{"port", listener->port()}});
  return listener;
}

store::PairedPlaces paired_places(const Options& options) {
  return {.daemon_directory = options.state_directory + "/daemon",
          .epoch_file = options.state_directory + "/epoch/current"};
}

struct Stores {
  store::OutputLogs outputs;
  store::Artifacts artifacts;
  store::Templates installed;
  store::TemplatePacks packs;
  store::Uploads uploads;
  std::unique_ptr<store::DirectoryBlobs> blobs;
  std::optional<store::Ballast> ballast;  // the ledger's, then
};

Result<Stores> open_stores(const Options& options, const std::string& own_directory) {
  ATOLL_TRY_VOID(make_directory(own_directory + "/outputs", 0700));
  ATOLL_TRY(auto outputs,
            store::OutputLogs::open(own_directory + "/outputs", options.log_budget_bytes));
  outputs.keep_free(kOutputFloorBytes);
  ATOLL_TRY(auto artifacts,
            store::Artifacts::open(own_directory + "/artifacts", kArtifactBudgetBytes));
  ATOLL_TRY(auto installed, store::Templates::open(options.state_directory + "/templates"));
  ATOLL_TRY(auto packs, store::TemplatePacks::open(own_directory + "/packs"));
  ATOLL_TRY(auto uploads, store::Uploads::open(own_directory + "/uploads"));
  ATOLL_TRY(auto blobs,
            store::DirectoryBlobs::open(own_directory + "/blobs", kFreeSpaceFloorBytes));
  ATOLL_TRY(auto ballast, store::Ballast::open(own_directory + "/ballast"));
  return Stores{std::move(outputs), std::move(artifacts), std::move(installed), std::move(packs),
                std::move(uploads), std::move(blobs),     std::move(ballast)};
}

Result<void> begin_rounds(asio::io_context& context, const Options& options, Rounds& rounds) {
  ATOLL_TRY(Fd directory, open_file(options.run_directory + "/daemon", O_PATH | O_DIRECTORY));
  ATOLL_TRY(auto heartbeat, linux::Heartbeat::open_at(directory.get(), "atolld", geteuid()));
  // detached: the daemon's own life, which ends with context.stop()
  spawn(context.get_executor(), keep_beating(std::move(heartbeat)));
  spawn(context.get_executor(), rounds.run());
  return {};
}

}  // namespace

Result<void> check_daemon(const Options& options) {
  if (!options.tls_listen.address.empty()) ATOLL_TRY_VOID(http::check_tls_files(options.tls_files));
  return store::check_pair(paired_places(options));
}

Result<void> adopt_orphans(const Options& options) {
  SystemClock clock;
  return store::join_pair(paired_places(options), to_milliseconds(clock.wall_now()));
}

Result<void> run_daemon(const Options& options) {
  ATOLL_TRY(auto lock, linux::LockFile::acquire(options.run_directory + "/daemon/atolld.lock"));
  watch_crash_directory(options.run_directory, "atolld");
  std::string own_directory = options.state_directory + "/daemon";
  ATOLL_TRY(auto catalog, store::Catalog::open(paired_places(options)));
  ATOLL_TRY(std::string key, store::ensure_local_key(*catalog, own_directory + "/local.key"));
  ATOLL_TRY(auto port_tokens, sandbox::PortTokens::open(own_directory + "/port.key"));
  ATOLL_TRY(Stores stores, open_stores(options, own_directory));
  // Suspended coroutines are destroyed with the io_context and still hold reservations and logs:
  // what they hold is declared before it, what holds sockets and timers of it after it.
  SystemClock clock;
  std::optional<Error> failure;
  sandbox::Admission admission(make_budget(options));
  sandbox::Ledger ledger(std::move(catalog), std::move(stores.ballast));
  store::BlobKeeper keeper(*stores.blobs);
  asio::io_context context(1);
  api::Health health(clock);
  Rounds rounds(context.get_executor(), options.run_directory, ledger, health);
  isolate::JailDriver driver(context.get_executor(), options.run_directory, rounds.warden());
  sandbox::Keys keys(ledger);
  sandbox::Services services{context.get_executor(), driver,          ledger, clock,
                             stores.outputs,         stores.artifacts};
  sandbox::Templates templates(stores.installed, options.state_directory + "/built-in");
  sandbox::Sandboxes sandboxes(services, admission, templates);
  sandbox::Snapshots snapshots(sandboxes, admission);
  sandbox::Seals seals(sandboxes, snapshots, {keeper, options.state_directory});
  sandbox::TemplateBuilds builds(sandboxes, templates, stores.packs,
                                 {options.state_directory + "/images", options.run_directory});
  templates.set_on_wanted([&](const std::string& name) { return builds.want_built_in(name); });

  sandbox::Idempotency idempotency(context.get_executor(), ledger, clock);
  api::Traffic traffic(clock, options.traffic);
  api::Router router(keys, idempotency, traffic, options.host_names);
  add_server_routes(router, health);
  add_routes_of_sandboxes(router, sandboxes);
  add_state_routes(router, sandboxes, snapshots, seals, idempotency);
  api::v1::add_port_routes(router, sandboxes, port_tokens);
  api::v1::add_key_routes(router, keys);
  ATOLL_TRY(auto tenants, open_tenants(sandboxes, own_directory));
  api::v1::add_tenant_routes(router, *tenants);
  api::v1::add_template_routes(router, builds, templates);
  sandbox::Meters meters(sandboxes, driver);
  std::string domain = port_domain(options);
  api::e2b::Door door(
      router, traffic,
      {sandboxes, snapshots, port_tokens, *tenants, meters, builds, stores.uploads, domain});
  ATOLL_TRY(auto server, listen(context, options, router));
  add_figures(router, *server, driver, sandboxes, admission);
  ATOLL_TRY(auto tls, listen_for_tls(context, options, *server));
  ATOLL_TRY_VOID(begin_rounds(context, options, rounds));
  ATOLL_TRY_VOID(publish(options, router, server->port()));

  sandbox::WallTrials trials(services, templates, trial_plan(options));
  HostWatch watch(health, driver, ledger, options.state_directory);
  watch.begin(context.get_executor());
  // detached: these are the daemon's own life and end with context.stop()
  spawn(context.get_executor(), serve(*server, context));
  if (tls) spawn(context.get_executor(), tls->run());
  spawn(context.get_executor(), stop_on_signal(*server, tls.get()));
  // detached: the daemon's own life too
  auto connect = [&] { spawn(context.get_executor(), driver.egress().run()); };
  Served served{ledger,      sandboxes, snapshots, seals,   builds,
                idempotency, router,    trials,    context, failure};
  // detached: the daemon's own life
  spawn(context.get_executor(), take_up(served, options, connect));
  watch_state(served, driver, own_directory);
  context.run();
  ledger.finish();
  return how_it_ended(failure);
}

}  // namespace atl::daemon
