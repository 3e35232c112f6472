#include "warden/isolate_groups.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "linux/clone.h"
#include "linux/mounts.h"
#include "linux/pidfd.h"

namespace atl::warden {
namespace {

using linux::Controller;

constexpr int kKillTimeoutMs = 5000;
constexpr uint64_t kCpuPeriodUs = 100'000;

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

// A file that only hosts with swap accounting have.
Result<void> write_if_present(int group, const std::string& file, const std::string& value) {
  if (faccessat(group, file.c_str(), F_OK, 0) != 0) return {};
  return write_file_at(group, file, value);
}

Result<void> set_v1_limit(int group, Controller controller, const Request& limits) {
  switch (controller) {
    case Controller::kMemory: {
      std::string bytes = std::to_string(limits.memory_bytes);
      ATOLL_TRY_VOID(write_file_at(group, "memory.limit_in_bytes", bytes));
      return write_if_present(group, "memory.memsw.limit_in_bytes", bytes);
    }
    case Controller::kCpu:
      ATOLL_TRY_VOID(write_file_at(group, "cpu.cfs_period_us", std::to_string(kCpuPeriodUs)));
      return write_file_at(group, "cpu.cfs_quota_us",
                           std::to_string(limits.cpu_millis * kCpuPeriodUs / 1000));
    case Controller::kPids:
      return write_file_at(group, "pids.max", std::to_string(limits.pids));
  }
  return Error::from_errno("limit", EINVAL);
}

Result<void> set_v2_limit(int group, Controller controller, const Request& limits) {
  switch (controller) {
    case Controller::kMemory:
      ATOLL_TRY_VOID(write_file_at(group, "memory.max", std::to_string(limits.memory_bytes)));
      return write_if_present(group, "memory.swap.max", "0");
    case Controller::kCpu:
      return write_file_at(
          group, "cpu.max",
          fmt::format("{} {}", limits.cpu_millis * kCpuPeriodUs / 1000, kCpuPeriodUs));
    case Controller::kPids:
      return write_file_at(group, "pids.max", std::to_string(limits.pids));
  }
  return Error::from_errno("limit", EINVAL);
}

Result<void> create_v1_groups(const Host& host, const SandboxId& id, const Request& limits) {
  for (Controller controller : linux::kControllers) {
    if (v1_of(host, controller).empty()) continue;
    std::string path = host.group_path(v1_of(host, controller), id);
    ATOLL_TRY_VOID(make_directory(path, 0755));  // two controllers may share a hierarchy
    ATOLL_TRY(Fd group, open_file(path, O_PATH | O_DIRECTORY));
    ATOLL_TRY_VOID(set_v1_limit(group.get(), controller, limits));
  }
  return {};
}

// The root of a cgroup namespace is the group of whoever makes it, and with `nsdelegate` a process
// may move others only below that root: it must be <id>, above both agent and run. So a short-lived
// process is born in <id> (it could not stay there: a group with controllers for its children holds
// no process), makes the namespace and leaves it open in our descriptor table.
Result<Fd> make_cgroup_namespace(int group) {
  ATOLL_TRY(auto maker, linux::clone_process({.flags = CLONE_FILES, .cgroup = group}));
  if (maker.in_child()) {
    if (unshare(CLONE_NEWCGROUP) != 0) _exit(0);
    int opened = open("/proc/self/ns/cgroup", O_RDONLY | O_CLOEXEC);
    _exit(opened > 0 && opened < 256 ? opened : 0);
  }
  ATOLL_TRY(int status, linux::wait_for_exit(maker.pidfd.get()));
  if (!WIFEXITED(status) || WEXITSTATUS(status) == 0)
    return Error::from_errno("make a cgroup namespace", EPERM);
  return Fd(WEXITSTATUS(status));
}

Result<void> chown_at(int directory, const char* name, uid_t owner) {
  if (fchownat(directory, name, owner, owner, AT_SYMLINK_NOFOLLOW) != 0)
    return Error::system(std::string("chown ") + name);
  return {};
}

Result<void> remove_if_empty(const std::string& path) {
  if (rmdir(path.c_str()) == 0 || errno == ENOENT || errno == EBUSY || errno == ENOTEMPTY)
    return {};
  return Error::system("rmdir " + path);
}

}  // namespace

Result<void> create_parent_groups(const Host& host) {
  const std::string& v2 = host.cgroups.v2;
  ATOLL_TRY_VOID(hand_down(host, v2));
  for (const std::string& path : {v2 + "/atoll", host.parent_group_path(v2)}) {
    ATOLL_TRY_VOID(make_directory(path, 0755));
    ATOLL_TRY_VOID(hand_down(host, path));
  }
  for (const std::string& hierarchy : host.cgroups.v1) {
    if (hierarchy.empty()) continue;
    ATOLL_TRY_VOID(make_directory(hierarchy + "/atoll", 0755));
    ATOLL_TRY_VOID(make_directory(host.parent_group_path(hierarchy), 0755));
  }
  return {};
}

Result<IsolateGroups> create_groups(const Host& host, const SandboxId& id, const Request& limits) {
  ATOLL_TRY_VOID(host.cgroups.check());
  std::string path = host.group_path(host.cgroups.v2, id);
  ATOLL_TRY_VOID(make_directory(path, 0755));
  IsolateGroups groups;
  ATOLL_TRY(Fd top, open_file(path, O_RDONLY | O_DIRECTORY));
  ATOLL_TRY(groups.cgroup_namespace, make_cgroup_namespace(top.get()));
  ATOLL_TRY_VOID(hand_down(host, path));
  ATOLL_TRY_VOID(make_directory(path + "/agent", 0755));
  ATOLL_TRY_VOID(make_directory(path + "/run", 0755));
  ATOLL_TRY(groups.agent, open_at(top.get(), "agent", O_RDONLY | O_DIRECTORY));
  ATOLL_TRY(groups.run, linux::clone_mount(top.get(), "run"));
  for (Controller controller : linux::kControllers) {
    if (in_v2(host, controller)) ATOLL_TRY_VOID(set_v2_limit(groups.run.get(), controller, limits));
  }
  ATOLL_TRY_VOID(create_v1_groups(host, id, limits));
  return groups;
}

Result<void> delegate_groups(const Host& host, const SandboxId& id, uid_t root) {
  ATOLL_TRY(Fd top, open_file(host.group_path(host.cgroups.v2, id), O_PATH | O_DIRECTORY));
  // Starting a process in a leaf needs write access to the common ancestor's cgroup.procs.
  ATOLL_TRY_VOID(chown_at(top.get(), "cgroup.procs", root));
  for (const char* name : {"run", "run/cgroup.procs", "run/cgroup.subtree_control",
                           "run/cgroup.threads", "run/cgroup.kill"})
    ATOLL_TRY_VOID(chown_at(top.get(), name, root));
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
    ATOLL_TRY_VOID(remove_if_empty(host.parent_group_path(hierarchy)));
    ATOLL_TRY_VOID(remove_if_empty(hierarchy + "/atoll"));
  }
  return {};
}

}  // namespace atl::warden
