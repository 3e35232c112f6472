#include "api/v1/limits.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "api/json_reply.h"

namespace atl::api::v1 {

namespace json = boost::json;

namespace {

json::object range(json::value least, json::value most) {
  return {{"least", std::move(least)}, {"most", std::move(most)}};
}

json::object sandbox_bounds() {
  json::object bounds;
  bounds["cpu"] = range(isolate::kMinCpuMillis / 1000.0, isolate::kMaxCpuMillis / 1000.0);
  bounds["memory_bytes"] = range(isolate::kMinMemoryBytes, isolate::kMaxMemoryBytes);
  bounds["pids"] = range(isolate::kMinPids, isolate::kMaxPids);
  bounds["disk_bytes"] = range(isolate::kMinDiskBytes, isolate::kMaxDiskBytes);
  bounds["output_bytes"] = range(0, sandbox::kMaxOutputLimitBytes);
  bounds["open_files"] = range(isolate::kMinOpenFiles, isolate::kMaxOpenFiles);
  bounds["disk_bytes_per_second"] =
      range(isolate::kMinDiskBytesPerSecond, isolate::kMaxDiskBytesPerSecond);
  bounds["cpu_time_ms"] = range(1, sandbox::kMaxCpuTimeMs);
  bounds["ttl_ms"] = range(1, sandbox::kMaxTtlMs);
  bounds["idle_ttl_ms"] = range(sandbox::kMinIdleTtlMs, sandbox::kMaxTtlMs);
  return bounds;
}

json::object host_object(const sandbox::Admission& admission) {
  const sandbox::Budget& budget = admission.budget();
  const sandbox::Promised& promised = admission.promised();
  auto resource = [](json::value may, uint64_t has) {
    return json::object{{"budget", std::move(may)}, {"promised", has}};
  };
  uint64_t disk_budget = admission.disk_budget();
  bool disk_counts = disk_budget != sandbox::kNoDiskBudget;
  json::value disk = disk_counts ? json::value(disk_budget) : json::value(nullptr);
  json::object host;
  host["sandboxes"] = resource(budget.sandboxes, promised.sandboxes);
  host["memory_bytes"] = resource(budget.memory_bytes, promised.memory_bytes);
  host["disk_bytes"] = resource(std::move(disk), promised.disk_bytes);
  return host;
}

// Without a reason while nothing is known: there is no image, or the trial goes on.
json::object machines_object(sandbox::Templates& templates) {
  const auto& found = templates.findings().hardware;
  bool known = found && found->image == templates.offered().machine;
  if (!known) return {{"virtualization", nullptr}, {"reason", ""}};
  bool hardware = found->virtualization == isolate::Virtualization::kHardware;
  return {{"virtualization", hardware ? "hardware" : "emulated"}, {"reason", found->reason}};
}

// The same of gVisor's.
json::object sentries_object(sandbox::Templates& templates) {
  const auto& found = templates.findings().platform;
  bool known = found && found->image == templates.sentry_image();
  if (!known || !found->platform)
    return {{"platform", nullptr}, {"reason", known ? found->reason : ""}};
  bool traces = *found->platform == isolate::Platform::kPtrace;
  return {{"platform", traces ? "ptrace" : "systrap"}, {"reason", found->reason}};
}

http::Task<Reply> show_limits(sandbox::Sandboxes& sandboxes, const sandbox::Admission& admission) {
  ATOLL_CO_TRY(uint32_t bits, co_await sandboxes.services().driver.probe());
  json::object machines = machines_object(sandboxes.templates());
  if (machines.at("virtualization") == "hardware")
    bits |= static_cast<uint32_t>(isolate::Extra::kHardwareVirtualization);
  json::array extras;
  for (const sandbox::NamedExtra& extra : sandbox::kExtras)
    if ((bits & static_cast<uint32_t>(extra.extra)) != 0) extras.emplace_back(extra.name);
  json::object exec;
  exec["timeout_ms"] = range(1, sandbox::kMaxTimeoutMs);
  exec["running"] = range(0, agent::kMaxExecs);
  json::object object;
  object["sandbox"] = sandbox_bounds();
  object["exec"] = std::move(exec);
  object["host"] = host_object(admission);
  object["extras"] = std::move(extras);
  object["machines"] = std::move(machines);
  object["sentries"] = sentries_object(sandboxes.templates());
  co_return std::optional(json_reply(200, object));
}

}  // namespace

void add_limits_route(Router& router, sandbox::Sandboxes& sandboxes,
                      const sandbox::Admission& admission) {
  auto action = [&sandboxes, &admission](Call&) { return show_limits(sandboxes, admission); };
  router.add({http::Method::kGet, "/v1/limits", action});
}

}  // namespace atl::api::v1
