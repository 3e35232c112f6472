#include "cli/places.h"

#include <filesystem>

namespace atl::cli {

Places Places::beneath(const std::string& state_directory) {
  // Absolute, because a detached supervisor and the children change their working directory.
  std::filesystem::path path = std::filesystem::absolute(state_directory).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return {.state = path.string(), .run = (path / "run").string()};
}

}  // namespace atl::cli
