// What the user asked for about what is kept of a host.
#pragma once

#include <string>

namespace atl::cli {

struct BackupCommand {
  std::string file;
  enum class Images : unsigned char { kHold, kLeaveOut };
  Images images = Images::kHold;
};
struct RestoreCommand {
  std::string file;
};

}  // namespace atl::cli
