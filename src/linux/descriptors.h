// Descriptors at the numbers that a program about to be executed expects: dup(2), close_range(2).
#pragma once

#include <span>

#include "base/result.h"

namespace atl::linux {

// The last one that close_range(2) may be asked for everywhere: gVisor's kernel refuses more.
inline constexpr unsigned kHighestDescriptor = 0x7fffffff;

struct Placement {
  int fd;  // -1: the number stays closed
  int number;
};

// A copy, closed by execve, above all numbers that place_descriptors() may touch.
Result<int> lift_descriptor(int fd);

// The standard streams become the null device, each `fd` gets its number, and the other numbers up
// to `last` are closed. All above are closed by execve, not now.
Result<void> place_descriptors(std::span<const Placement> placements, int last);

}  // namespace atl::linux
