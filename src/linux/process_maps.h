// /proc/<pid>/maps, taken apart: see proc_pid_maps(5).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl::linux {

struct MappedArea {
  uint64_t start, end;
  int protection;  // PROT_READ and so on
  bool shared;
  uint64_t offset;
  std::string name;  // a path, "[heap]", or nothing

  bool is_of_file() const { return name.starts_with('/'); }
};

// A line that cannot be read is an error.
Result<std::vector<MappedArea>> parse_maps(std::string_view text);

}  // namespace atl::linux
