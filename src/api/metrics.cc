#include "api/metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <charconv>

#include "api/metric_text.h"
#include "base/file.h"

namespace atl::api {

namespace {

using Kind = MetricText::Kind;
using sandbox::State;

double number(uint64_t value) { return static_cast<double>(value); }

void write_sandboxes(MetricText& text, const MetricSources& sources) {
  const sandbox::Tally& tally = sources.sandboxes.services().tally;
  std::map<State, size_t> states = {{State::kCreating, 0},
                                    {State::kRunning, 0},
                                    {State::kPaused, 0},
                                    {State::kFailed, 0},
                                    {State::kDeleting, 0}};
  size_t running_execs = 0;
  for (const auto& [id, sandbox] : sources.sandboxes.all()) {
    ++states[sandbox->state()];
    running_execs += sandbox->execs().running();
  }
  text.begin(Kind::kGauge, "atoll_sandboxes", "Sandboxes by state.");
  for (const auto& [state, count] : states)
    text.sample(number(count), {{"state", sandbox::state_name(state)}});
  text.add("atoll_sandbox_create_seconds", "Time of the creates that made a sandbox.",
           tally.create_time);
  text.add(Kind::kCounter, "atoll_sandbox_create_failures_total", "Creates that made none.",
           number(tally.failed_creates));
  text.add(Kind::kGauge, "atoll_execs_running", "Execs that run now.", number(running_execs));
  text.begin(Kind::kCounter, "atoll_execs_total", "Execs that have ended, by verdict.");
  for (const auto& [verdict, count] : tally.execs)
    text.sample(number(count), {{"verdict", verdict}});
  text.add("atoll_exec_start_seconds", "Time in which the agent started the program of an exec.",
           tally.exec_start_time);
  text.add(Kind::kGauge, "atoll_output_log_bytes", "Disk blocks that hold what execs printed.",
           number(sources.sandboxes.services().outputs.used_bytes()));
}

void write_warm_pool(MetricText& text, sandbox::WarmPool& pool) {
  const sandbox::WarmCounts& counts = pool.counts();
  text.add(Kind::kGauge, "atoll_warm_pool_size", "Isolates that wait for a sandbox.",
           number(pool.size()));
  text.add(Kind::kCounter, "atoll_warm_pool_hits_total", "Creates that found an isolate waiting.",
           number(counts.hits));
  text.add(Kind::kCounter, "atoll_warm_pool_misses_total",
           "Creates of a template with a pool that found none.", number(counts.misses));
  text.add(Kind::kCounter, "atoll_warm_pool_launches_total", "Isolates that joined the pool.",
           number(counts.launches));
  text.add(Kind::kCounter, "atoll_warm_pool_failures_total", "Isolates that could not join it.",
           number(counts.failures));
  text.add(Kind::kCounter, "atoll_warm_pool_launch_seconds_total", "Time of all those launches.",
           number(counts.launch_us) / 1e6);
  const sandbox::ZygoteCounts& zygotes = pool.zygotes().counts();
  text.add(Kind::kGauge, "atoll_zygotes", "Templates whose interpreter is copied.",
           number(pool.zygotes().size()));
  text.add(Kind::kCounter, "atoll_zygote_copies_total", "Interpreters that were copied.",
           number(zygotes.copies));
  text.add(Kind::kCounter, "atoll_zygotes_made_total", "Times that one was made.",
           number(zygotes.made));
  text.add(Kind::kCounter, "atoll_zygote_failures_total",
           "Times that one could not be made or copied: the template starts cold.",
           number(zygotes.failures));
}

void write_budget(MetricText& text, const sandbox::Admission& admission) {
  const sandbox::Budget& budget = admission.budget();
  const sandbox::Promised& promised = admission.promised();
  text.begin(Kind::kGauge, "atoll_budget", "What this host may promise to sandboxes.");
  text.sample(number(budget.sandboxes), {{"resource", "sandboxes"}});
  text.sample(number(budget.memory_bytes), {{"resource", "memory_bytes"}});
  if (admission.disk_budget() != sandbox::kNoDiskBudget)
    text.sample(number(admission.disk_budget()), {{"resource", "disk_bytes"}});
  text.begin(Kind::kGauge, "atoll_promised", "What it has promised, waiting isolates included.");
  text.sample(number(promised.sandboxes), {{"resource", "sandboxes"}});
  text.sample(number(promised.memory_bytes), {{"resource", "memory_bytes"}});
  text.sample(number(promised.disk_bytes), {{"resource", "disk_bytes"}});
}

void write_requests(MetricText& text, const Router& router, const MetricSources& sources) {
  text.begin(Kind::kCounter, "atoll_http_requests_total",
             "Requests by route and status; status 0: the client had gone.");
  for (const auto& [answered, count] : router.answered()) {
    std::string_view route = answered.first.empty() ? "none" : std::string_view(answered.first);
    text.sample(number(count), {{"route", route}, {"status", std::to_string(answered.second)}});
  }
  text.add(Kind::kGauge, "atoll_http_open_connections", "Connections of clients.",
           number(sources.open_connections()));
  if (sources.dropped_connections)
    text.add(Kind::kCounter, "atoll_http_dropped_connections_total",
             "Connections without a key that were closed for others to have room.",
             number(sources.dropped_connections()));
}

void write_egress(MetricText& text, const Result<egress::Health>& health) {
  text.add(Kind::kGauge, "atoll_egress_up", "Whether atoll-egress answers.", health ? 1 : 0);
  if (!health) return;
  text.begin(Kind::kGauge, "atoll_egress_descriptors", "Descriptors of atoll-egress.");
  text.sample(number(health->descriptors_limit), {{"kind", "limit"}});
  text.sample(number(health->descriptors_used), {{"kind", "used"}});
  text.begin(Kind::kGauge, "atoll_egress_sandboxes", "Sandboxes that it serves, and may serve.");
  text.sample(number(health->sandboxes_limit), {{"kind", "limit"}});
  text.sample(number(health->sandboxes), {{"kind", "used"}});
  text.add(Kind::kCounter, "atoll_egress_connections_refused_total",
           "Connections of sandboxes that found no descriptors.",
           number(health->connections_refused));
  text.add(Kind::kCounter, "atoll_egress_connections_idle_total",
           "Connections of sandboxes that ended because nothing was said.",
           number(health->connections_idle_ended));
}

Result<void> write_process(MetricText& text) {
  ATOLL_TRY(std::string statm, read_file("/proc/self/statm"));
  std::string_view resident = std::string_view(statm).substr(statm.find(' ') + 1);
  uint64_t pages = 0;
  if (std::from_chars(resident.data(), resident.data() + resident.size(), pages).ec != std::errc())
    return Error(Code::kCorrupt, "/proc/self/statm has no second number");
  text.add(Kind::kGauge, "process_resident_memory_bytes", "Resident memory of atolld.",
           number(pages * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE))));
  rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return Error::system("getrusage");
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  text.add(Kind::kCounter, "process_cpu_seconds_total", "Cpu time of atolld.",
           seconds(usage.ru_utime) + seconds(usage.ru_stime));
  return {};
}

http::Task<Result<http::Response>> show(const Call& call, const Router& router,
                                        const MetricSources& sources) {
  if (call.tenant != store::kLocalTenant)
    co_return Error(Code::kDenied, "only the tenant local may see the figures of this host")
        .with_reason("operator_only");
  MetricText text;
  if (sources.egress) {
    auto health = co_await sources.egress();
    write_egress(text, health);
  }
  text.begin(Kind::kGauge, "atoll_build_info", "The version that runs, always 1.");
  text.sample(1, {{"version", ATOLL_VERSION}});
  write_sandboxes(text, sources);
  write_warm_pool(text, sources.sandboxes.pool());
  write_budget(text, sources.admission);
  write_requests(text, router, sources);
  ATOLL_CO_TRY_VOID(write_process(text));
  http::Response response;
  response.headers.add("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  response.body = text.take();
  co_return response;
}

}  // namespace

void add_metrics_route(Router& router, MetricSources sources) {
  auto action = [&router, sources = std::move(sources)](Call& call) -> http::Task<Reply> {
    ATOLL_CO_TRY(http::Response response, co_await show(call, router, sources));
    co_return std::optional(std::move(response));
  };
  router.add({http::Method::kGet, "/metrics", action});
}

}  // namespace atl::api
