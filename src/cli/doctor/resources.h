// Room on this host: disk for layers, memory, and a processor that can carry other kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cli/doctor/finding.h"
#include "cli/places.h"

namespace atl::cli {

// A field of /proc/meminfo, in bytes.
std::optional<uint64_t> parse_meminfo(std::string_view text, std::string_view field);

Finding judge_disk(const std::string& directory, uint64_t free_bytes);

Findings probe_resources(const Places& places);

}  // namespace atl::cli
