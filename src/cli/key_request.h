// What the user asked for about keys, and about what is kept of a host.
#pragma once

#include <string>

namespace atl::cli {

struct CreateKeyCommand {
  std::string tenant;  // empty: the tenant of this host
  std::string name;
  enum class Shape : unsigned char { kAtoll, kE2b } shape = Shape::kAtoll;
};
struct ListKeysCommand {};
struct RevokeKeyCommand {
  std::string id;
};
struct BackupCommand {
  std::string file;
  enum class Images : unsigned char { kHold, kLeaveOut };
  Images images = Images::kHold;
};
struct RestoreCommand {
  std::string file;
};

}  // namespace atl::cli
