// /proc/self/mountinfo, taken apart: see proc_pid_mountinfo(5).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl::linux {

struct MountInfo {
  std::string root;  // which directory of the file system is mounted
  std::string mount_point;
  std::string file_system;
  std::string super_options;  // comma-separated
};

bool has_option(std::string_view comma_separated, std::string_view option);

// Octal escapes (\040 for a space) in paths are resolved. A line that cannot be read is an error.
Result<std::vector<MountInfo>> parse_mountinfo(std::string_view text);
Result<std::vector<MountInfo>> read_mountinfo();

}  // namespace atl::linux
