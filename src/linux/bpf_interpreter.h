// What a system call filter answers, found out without the kernel: runs a classic BPF program on a
// description of one call. It knows the instructions that our filters are made of and refuses a
// program with any other, so an answer is never a guess. A jump leads only forward; every run ends.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <span>

#include "base/result.h"

namespace atl::linux {

// The checks of the kernel when it loads a filter: known instructions, aligned loads inside
// seccomp_data, jumps inside the program, a return at its end.
Result<void> check_filter_program(std::span<const sock_filter> program);

// The action with its data, SECCOMP_RET_*.
Result<uint32_t> run_filter_program(std::span<const sock_filter> program, const seccomp_data& call);

}  // namespace atl::linux
