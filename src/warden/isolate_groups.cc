#include "warden/isolate_groups.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "base/log.h"
#include "linux/cgroup_namespace.h"
#include "linux/file_tree.h"
#include "linux/mounts.h"

namespace atl::warden {
namespace {

using linux::Controller;

constexpr int kKillTimeoutMs = 30'000;

bool in_v2(const Host& host, Controller controller) {
  return host.cgroups.in_v2[static_cast<size_t>(controller)];
}
const std::string& v1_of(const Host& host, Controller controller) {
  return host.cgroups.v1[static_cast<size_t>(controller)];
}

// "+memory +cpu +pids", or as many of them as the v2 tree has.
std::string v2_controllers(const Host& host) {
  std::string text;
  for (Controller controller : linux::kControllers)
    if (in_v2(host, controller)) text += fmt::format("+{} ", controller_name(controller));
  return text;
}

Result<void> hand_down(const Host& host, const std::string& group) {
  std::string controllers = v2_controllers(host);
  if (controllers.empty()) return {};
  return write_file_at(AT_FDCWD, group + "/cgroup.subtree_control", controllers);
}

// A rate of disk bytes is not always asked for, so a host that does not give io away is not at
// fault.
void hand_down_io(const Host& host, const std::string& group) {
  if (!host.cgroups.io_in_v2) return;
  auto given = write_file_at(AT_FDCWD, group + "/cgroup.subtree_control", "+io");
  if (!given) log_warning("disk rates cannot be limited", {given.error()});
}

// So that each leaf counts its own kills, peak and refused forks. Processes live in leaves only,
// never in <id>/run itself, which a group that hands controllers down may not have.
Result<void> hand_down_to_leaves(const Host& host, const std::string& run) {
  for (Controller controller : {Controller::kMemory, Controller::kPids}) {
    if (!in_v2(host, controller)) continue;
    std::string text = fmt::format("+{}", controller_name(controller));
    ATOLL_TRY_VOID(write_file_at(AT_FDCWD, run + "/cgroup.subtree_control", text));
  }
  return {};
}

Result<void> open_counters(const Host& host, const SandboxId& id, IsolateGroups& groups) {
  ATOLL_TRY_VOID(in_v2(host, Controller::kMemory)
                     ? linux::open_memory_counters(groups.run.get(), groups.counters)
                     : linux::open_memory_counters(
                           host.group_path(v1_of(host, Controller::kMemory), id), groups.counters));
  if (in_v2(host, Controller::kPids)) {
    ATOLL_TRY(groups.counters.pids_events, open_at(groups.run.get(), "pids.events", O_RDONLY));
    return {};
  }
  std::string group = host.group_path(v1_of(host, Controller::kPids), id);
  ATOLL_TRY(groups.counters.pids_events, open_file(group + "/pids.events", O_RDONLY));
  return {};
}

Result<void> create_v1_groups(const Host& host, const SandboxId& id) {
  for (const std::string& hierarchy : host.cgroups.v1) {
    if (hierarchy.empty()) continue;
    // Two controllers may share a hierarchy.
    ATOLL_TRY_VOID(make_directory(host.group_path(hierarchy, id), 0755));
  }
  return {};
}

uint64_t limit_of(const Request& limits, Controller controller) {
  if (controller == Controller::kMemory) return limits.memory_bytes;
  return controller == Controller::kCpu ? limits.cpu_millis : limits.pids;
}

// Thousands of processes die faster when their end is not held to what they were allowed in life.
// A group that is gone already has nothing to lift.
void lift_cpu_limit(const Host& host, const SandboxId& id) {
  const std::string& v1 = v1_of(host, Controller::kCpu);
  if (in_v2(host, Controller::kCpu))
    (void)write_file_at(AT_FDCWD, host.group_path(host.cgroups.v2, id) + "/run/cpu.max", "max");
  else if (!v1.empty())
    (void)write_file_at(AT_FDCWD, host.group_path(v1, id) + "/cpu.cfs_quota_us", "-1");
}

}  // namespace

Result<void> create_parent_groups(const Host& host) {
  const std::string& v2 = host.cgroups.v2;
  ATOLL_TRY_VOID(hand_down(host, v2));
  hand_down_io(host, v2);
  ATOLL_TRY_VOID(linux::make_nested_group(v2 + "/atoll", host.tag));
  for (const std::string& path : {v2 + "/atoll", host.parent_group_path(v2)}) {
    ATOLL_TRY_VOID(hand_down(host, path));
    hand_down_io(host, path);
  }
  for (const std::string& hierarchy : host.cgroups.v1) {
    if (hierarchy.empty()) continue;
    ATOLL_TRY_VOID(linux::make_nested_group(hierarchy + "/atoll", host.tag));
  }
  return {};
}

Result<IsolateGroups> create_groups(const Host& host, const SandboxId& id, const Request& limits) {
  ATOLL_TRY_VOID(host.cgroups.check());
  std::string path = host.group_path(host.cgroups.v2, id);
  ATOLL_TRY_VOID(make_directory(path, 0755));
  IsolateGroups groups;
  ATOLL_TRY(Fd top, open_file(path, O_RDONLY | O_DIRECTORY));
  ATOLL_TRY(groups.cgroup_namespace, linux::make_cgroup_namespace(top.get()));
  ATOLL_TRY_VOID(hand_down(host, path));
  ATOLL_TRY_VOID(make_directory(path + "/agent", 0755));
  ATOLL_TRY_VOID(make_directory(path + "/run", 0755));
  ATOLL_TRY(groups.agent, open_at(top.get(), "agent", O_RDONLY | O_DIRECTORY));
  ATOLL_TRY(groups.run, linux::clone_mount(top.get(), "run"));
  ATOLL_TRY_VOID(create_v1_groups(host, id));
  ATOLL_TRY_VOID(set_group_limits(host, id, limits));
  ATOLL_TRY_VOID(hand_down_to_leaves(host, path + "/run"));
  ATOLL_TRY_VOID(open_counters(host, id, groups));
  return groups;
}

Result<LimitedGroup> open_limited_group(const Host& host, const SandboxId& id,
                                        Controller controller) {
  bool v2 = in_v2(host, controller);
  std::string path = v2 ? host.group_path(host.cgroups.v2, id) + "/run"
                        : host.group_path(v1_of(host, controller), id);
  ATOLL_TRY(Fd group, open_file(path, O_PATH | O_DIRECTORY));
  return LimitedGroup{std::move(group), v2 ? linux::GroupVersion::kV2 : linux::GroupVersion::kV1};
}

Result<void> set_group_limits(const Host& host, const SandboxId& id, const Request& limits) {
  std::string path = host.group_path(host.cgroups.v2, id);
  if (limits.disk_bytes_per_second != 0) hand_down_io(host, path);
  ATOLL_TRY(Fd run, open_file(path + "/run", O_PATH | O_DIRECTORY));
  ATOLL_TRY_VOID(linux::set_disk_rate(run.get(), host.pool_device, limits.disk_bytes_per_second));
  for (Controller controller : {Controller::kPids, Controller::kCpu, Controller::kMemory}) {
    ATOLL_TRY(LimitedGroup limited, open_limited_group(host, id, controller));
    ATOLL_TRY_VOID(linux::set_group_limit(limited.group.get(), limited.version, controller,
                                          limit_of(limits, controller)));
  }
  return {};
}

Result<void> delegate_groups(const Host& host, const SandboxId& id, uid_t root) {
  ATOLL_TRY(Fd top, open_file(host.group_path(host.cgroups.v2, id), O_PATH | O_DIRECTORY));
  // Starting a process in a leaf needs write access to the common ancestor's cgroup.procs.
  ATOLL_TRY_VOID(linux::chown_at(top.get(), "cgroup.procs", root));
  for (const char* name : {"run", "run/cgroup.procs", "run/cgroup.subtree_control",
                           "run/cgroup.threads", "run/cgroup.kill"})
    ATOLL_TRY_VOID(linux::chown_at(top.get(), name, root));
  return {};
}

Result<void> enter_v1_groups(const Host& host, const SandboxId& id, pid_t pid) {
  // Back to back: only the first pays for the grace period.
  for (const std::string& hierarchy : host.cgroups.v1) {
    if (hierarchy.empty()) continue;
    std::string file = host.group_path(hierarchy, id) + "/cgroup.procs";
    ATOLL_TRY_VOID(write_file_at(AT_FDCWD, file, std::to_string(pid)));
  }
  return {};
}

Result<void> remove_groups(const Host& host, const SandboxId& id) {
  lift_cpu_limit(host, id);
  if (!host.cgroups.v2.empty()) {
    std::string path = host.group_path(host.cgroups.v2, id);
    ATOLL_TRY_VOID(linux::kill_group(path, kKillTimeoutMs));
    ATOLL_TRY_VOID(linux::remove_group(path));
  }
  for (const std::string& hierarchy : host.cgroups.v1) {
    if (hierarchy.empty()) continue;
    ATOLL_TRY_VOID(linux::remove_group(host.group_path(hierarchy, id)));
  }
  return {};
}

Result<void> remove_parent_groups(const Host& host) {
  std::vector<std::string> hierarchies(host.cgroups.v1.begin(), host.cgroups.v1.end());
  hierarchies.push_back(host.cgroups.v2);
  for (const std::string& hierarchy : hierarchies) {
    if (hierarchy.empty()) continue;
    ATOLL_TRY_VOID(linux::remove_empty_group(host.parent_group_path(hierarchy)));
    ATOLL_TRY_VOID(linux::remove_empty_group(hierarchy + "/atoll"));
  }
  return {};
}

}  // namespace atl::warden
