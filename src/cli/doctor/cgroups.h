// Control groups: where each controller lives, whether a group can be made, limited, born into and
// killed, and which switches of the host make starts faster.
#pragma once

#include <string_view>
#include <vector>

#include "cli/doctor/finding.h"
#include "linux/cgroup_tree.h"
#include "linux/mountinfo.h"

namespace atl::cli {

// "v2 at /sys/fs/cgroup" and its like.
std::string describe_layout(const linux::CgroupTree& tree);

// The switch belongs to the kernel as a whole: one hierarchy that has it is enough.
Finding judge_favordynmods(const linux::CgroupTree& tree,
                           const std::vector<linux::MountInfo>& mounts);

// `v2_controllers` is the text of the root's cgroup.controllers.
Finding judge_io_controller(std::string_view v2_controllers);

Findings probe_cgroups();

}  // namespace atl::cli
