// What is made of a control group for whoever lives in it: its namespace, and on version 1 a notice
// of its lack of memory.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

// Rooted at the open group.
//
// The root of a cgroup namespace is the group of whoever makes it, and with `nsdelegate` a process
// may move others only below that root: it must be <id>, above both agent and run. So a short-lived
// process is born in <id> (it could not stay there: a group with controllers for its children holds
// no process), makes the namespace and leaves it open in our descriptor table.
Result<Fd> make_cgroup_namespace(int group);

// An eventfd that the kernel writes to when the group runs out of memory.
Result<Fd> register_v1_notice(const std::string& group, int oom_control);

}  // namespace atl::linux
