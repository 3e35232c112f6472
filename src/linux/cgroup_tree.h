// Where this host keeps its control groups: the version 2 tree (on mixed hosts beside the version 1
// hierarchies, with core files but few controllers), and for each controller that limits need, the
// hierarchy it lives in. Found from mountinfo, not assumed.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "linux/mountinfo.h"

namespace atl::linux {

enum class Controller : unsigned char { kMemory, kCpu, kPids };
inline constexpr std::array<Controller, 3> kControllers = {Controller::kMemory, Controller::kCpu,
                                                           Controller::kPids};
std::string_view controller_name(Controller controller);

struct CgroupTree {
  std::string v2;                  // mount point of the version 2 tree; empty: none
  std::array<bool, 3> in_v2 = {};  // by Controller: offered by the root of the v2 tree
  std::array<std::string, 3> v1;   // by Controller: mount point of its v1 hierarchy, or empty

  bool io_in_v2 = false;  // the root of the v2 tree offers io

  bool has(Controller controller) const;
  bool uses_v1() const;
  // There is a v2 tree, and memory, cpu and pids can each be limited somewhere.
  Result<void> check() const;
};

// `v2_controllers` is the text of the root's cgroup.controllers.
CgroupTree find_cgroups(const std::vector<MountInfo>& mounts, std::string_view v2_controllers);
Result<CgroupTree> read_cgroups();

// The path on the line of a controller in /proc/<pid>/cgroup, "4:cpu,cpuacct:/atoll/x"; empty:
// none.
std::string v1_group_of(std::string_view groups, Controller controller);

// Makes both, also while others remove the parent whenever it is empty.
Result<void> make_nested_group(const std::string& parent, const std::string& name);

// Removes a group and all groups below it; absence is a success. A group that is still in use is
// given a moment, because processes leave a group slightly after they are seen to be dead.
Result<void> remove_group(const std::string& path);
// Only if nothing is in it.
Result<void> remove_empty_group(const std::string& path);

// Kills every process of a v2 group and waits until none is left; absence is a success.
Result<void> kill_group(const std::string& path, int timeout_ms);

// Stops every process of a v2 group, also those that are started in it from now on, and waits until
// all stand still. Those that do not in that time go on, and so do all others.
Result<void> freeze_group(const std::string& path, int timeout_ms);
Result<void> thaw_group(const std::string& path);

}  // namespace atl::linux
