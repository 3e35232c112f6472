#include "warden/enforced_limits.h"

#include <fcntl.h>

#include "base/file.h"
#include "base/log.h"
#include "linux/group_limits.h"
#include "linux/subvolume.h"
#include "warden/inventory.h"
#include "warden/isolate_groups.h"
#include "warden/kernel_memory_guard.h"
#include "warden/layer_pool.h"

namespace atl::warden {
namespace {

using linux::Controller;

Result<uint64_t> read_controller(const Host& host, const SandboxId& id, Controller controller) {
  ATOLL_TRY(LimitedGroup limited, open_limited_group(host, id, controller));
  return linux::read_group_limit(limited.group.get(), limited.version, controller);
}

// Memory comes last, in set_group_limits(): only that can be refused for what is in use.
Result<void> set_limits(const Host& host, const SandboxId& id, const Request& limits) {
  ATOLL_TRY(Fd layer, open_layer(host, id));
  ATOLL_TRY_VOID(linux::set_subvolume_limit(layer.get(), limits.disk_bytes));
  ATOLL_TRY_VOID(set_group_limits(host, id, limits));
  ATOLL_TRY(Request kept, read_enforced_limits(host, id));
  bool same = kept.memory_bytes == linux::whole_pages(limits.memory_bytes) &&
              kept.cpu_millis == limits.cpu_millis && kept.pids == limits.pids &&
              kept.disk_bytes == limits.disk_bytes &&
              kept.disk_bytes_per_second == limits.disk_bytes_per_second;
  if (!same) return Error::from_errno("the kernel did not keep the limits", ERANGE);
  return {};
}

}  // namespace

Result<Request> read_enforced_limits(const Host& host, const SandboxId& id) {
  Request limits = {};
  ATOLL_TRY(limits.memory_bytes, read_controller(host, id, Controller::kMemory));
  ATOLL_TRY(uint64_t cpu, read_controller(host, id, Controller::kCpu));
  ATOLL_TRY(uint64_t pids, read_controller(host, id, Controller::kPids));
  limits.cpu_millis = static_cast<uint32_t>(cpu);
  limits.pids = static_cast<uint32_t>(pids);
  ATOLL_TRY(Fd layer, open_layer(host, id));
  ATOLL_TRY(limits.disk_bytes, linux::read_subvolume_limit(layer.get()));
  ATOLL_TRY(Fd run, open_file(host.group_path(host.cgroups.v2, id) + "/run", O_PATH));
  ATOLL_TRY(limits.disk_bytes_per_second, linux::read_disk_rate(run.get(), host.pool_device));
  return limits;
}

Result<linux::ResourceUsage> read_usage(const Host& host, const SandboxId& id) {
  linux::ResourceUsage usage = {};
  usage.ended_for_kernel_memory = was_ended_for_kernel_memory(host, id) ? 1 : 0;
  ATOLL_TRY(LimitedGroup group, open_limited_group(host, id, Controller::kMemory));
  ATOLL_TRY(auto memory, linux::read_memory_usage(group.group.get(), group.version));
  usage.memory_bytes = memory.used_bytes;
  usage.cache_bytes = memory.cache_bytes;
  ATOLL_TRY(usage.memory_kills, linux::read_memory_kills(group.group.get(), group.version));
  ATOLL_TRY(Fd run, open_file(host.group_path(host.cgroups.v2, id) + "/run", O_PATH));
  ATOLL_TRY(usage.cpu_us, linux::read_cpu_us(run.get()));
  ATOLL_TRY(Fd layer, open_layer(host, id));
  ATOLL_TRY(usage.disk_bytes, linux::read_subvolume_usage(layer.get()));
  return usage;
}

linux::Facts limit_facts(const Request& limits) {
  return {{"limits.memory_bytes", std::to_string(linux::whole_pages(limits.memory_bytes))},
          {"limits.cpu_millis", std::to_string(limits.cpu_millis)},
          {"limits.pids", std::to_string(limits.pids)},
          {"limits.disk_bytes", std::to_string(limits.disk_bytes)}};
}

Result<void> change_limits(const Host& host, const SandboxId& id, const Request& limits) {
  ATOLL_TRY(auto record, lock_record(host, id));
  if (!record) return Error::from_errno("there is no isolate " + id.string(), ENOENT);
  ATOLL_TRY(Request before, read_enforced_limits(host, id));
  Result<void> changed = set_limits(host, id, limits);
  if (changed) return changed;
  Result<void> restored = set_limits(host, id, before);
  if (!restored) log_error("limits are not as before", {{"sandbox", id.view()}, restored.error()});
  return changed;
}

}  // namespace atl::warden
