// What the kernel itself offers: its version, its system call filters, its settings.
#pragma once

#include <compare>
#include <optional>
#include <string_view>

#include "cli/doctor/finding.h"

namespace atl::cli {

struct KernelVersion {
  unsigned major = 0;
  unsigned minor = 0;
  auto operator<=>(const KernelVersion&) const = default;
};

inline constexpr KernelVersion kKernelFloor{6, 1};

// "6.1.0-13-amd64" and its like.
std::optional<KernelVersion> parse_kernel_version(std::string_view release);
// Of the running kernel; nothing when it cannot be read as one.
std::optional<KernelVersion> kernel_version();
std::string kernel_release();

Findings probe_kernel();

}  // namespace atl::cli
