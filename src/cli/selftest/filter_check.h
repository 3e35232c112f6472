// The system call filter asked number by number, without making the calls: a call that this kernel
// does not have must be refused by the filter all the same.
#pragma once

#include <linux/seccomp.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace atl::cli::selftest {

// What a filter answers for one call: a value of SECCOMP_RET_*.
using Evaluate = std::function<uint32_t(const seccomp_data&)>;

// What the filter lets through but must not, or refuses but must not; empty when all is right.
std::vector<std::string> check_filter(const Evaluate& evaluate);

}  // namespace atl::cli::selftest
