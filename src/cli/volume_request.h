// What the user asked for about volumes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace atl::cli {

struct VolumeCommand {
  enum class What : unsigned char { kCreate, kList, kShow, kRemove };
  What what = What::kList;
  std::vector<std::string> names;
  uint64_t bytes = 0;
};

// A volume that a sandbox shall have.
struct VolumeMount {
  std::string name, path;
  std::string mode = "rw";  // "rw" | "ro"
};
// NAME:/PATH, or with ":ro" behind it.
Result<VolumeMount> parse_volume(const std::string& word);

}  // namespace atl::cli
