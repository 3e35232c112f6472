#include "microvm/guest_groups.h"

#include <fcntl.h>
#include <sys/mount.h>

#include "base/file.h"
#include "linux/group_limits.h"

namespace atl::microvm {
namespace {

using linux::Controller;
using linux::GroupVersion;

constexpr uint32_t kWholeProcessor = 1000;  // the machine has one

Result<void> set_limits(int group, const agent::GuestLimits& limits) {
  const std::pair<Controller, uint64_t> wanted[] = {{Controller::kPids, limits.pids},
                                                    {Controller::kMemory, limits.memory_bytes}};
  for (const auto& [controller, value] : wanted)
    ATOLL_TRY_VOID(linux::set_group_limit(group, GroupVersion::kV2, controller, value));
  if (limits.cpu_millis >= kWholeProcessor) return {};
  return linux::set_group_limit(group, GroupVersion::kV2, Controller::kCpu, limits.cpu_millis);
}

}  // namespace

Result<GuestGroups> make_guest_groups(const std::string& path, const agent::GuestLimits& limits) {
  ATOLL_TRY_VOID(make_directory(path, 0700));
  unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (mount("cgroup2", path.c_str(), "cgroup2", flags, nullptr) != 0)
    return Error::system("mount the groups");
  const std::string all = "/cgroup.subtree_control";
  ATOLL_TRY_VOID(write_file_at(AT_FDCWD, path + all, "+memory +cpu +pids"));
  ATOLL_TRY_VOID(make_directory(path + "/agent", 0755));
  ATOLL_TRY_VOID(make_directory(path + "/run", 0755));
  GuestGroups groups;
  ATOLL_TRY(groups.agent, open_file(path + "/agent", O_RDONLY | O_DIRECTORY));
  ATOLL_TRY(groups.run, open_file(path + "/run", O_RDONLY | O_DIRECTORY));
  int run = groups.run.get();
  ATOLL_TRY_VOID(set_limits(run, limits));
  // So that each leaf counts its own kills, peak and refused forks.
  ATOLL_TRY_VOID(write_file_at(run, "cgroup.subtree_control", "+memory +pids"));
  ATOLL_TRY(groups.counters[0], open_at(run, "memory.events", O_RDONLY));
  ATOLL_TRY(groups.counters[1], open_at(run, "pids.events", O_RDONLY));
  auto peak = open_at(run, "memory.peak", O_RDONLY);
  if (peak) groups.counters[2] = std::move(*peak);
  ATOLL_TRY(groups.counters[3], open_at(run, "memory.events", O_RDONLY));
  return groups;
}

}  // namespace atl::microvm
