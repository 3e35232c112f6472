// The process in a cgroup that is meant to hold one, by pidfd, so that its number cannot come to
// mean another.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

// ESRCH: there is none, or it has ended.
Result<Fd> open_first_member(const std::string& group);

}  // namespace atl::linux
