// Which files of a state directory a backup holds, and whose each is. What is not named here is
// made anew (locks, the sockets' directory), belongs to sandboxes, which do not outlive their host
// (the layer pool), or is for reading only (logs).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/places.h"
#include "cli/process.h"

namespace atl::cli::backup {

enum class Owner : unsigned char { kRoot, kDaemon };

struct StateRule {
  std::string_view path;  // beneath the state directory: a file, or a directory with all beneath it
  enum class Kind : unsigned char { kFile, kTree } kind;
  Owner owner;
  unsigned file_mode;
  unsigned directory_mode;
};

inline constexpr std::string_view kDatabasePath = "daemon/atoll.db";
// Made from the copy of the database: the live one may have gone on.
inline constexpr std::string_view kEpochPath = "epoch/current";
inline constexpr std::string_view kImagesPath = "images";

// The rule that a file of this path falls under; null: no backup holds it. A path that is not clean
// ("a/../b", "/a") falls under none.
const StateRule* find_rule(std::string_view path);
// The same for a directory that holds such files.
const StateRule* find_directory_rule(std::string_view path);

struct StateFile {
  std::string path;  // beneath the state directory
  int fd;            // a regular file of the owner that its rule names
  uint64_t size;
  int64_t modified_ns;
};

// Calls `take` for every file that is there and has a rule, but the database, which must be copied
// by SQLite. Follows no link; a file that goes away meanwhile is not there.
using TakeFile = std::function<Result<void>(const StateFile&)>;
Result<void> for_each_state_file(const Places& places, const Identity& daemon,
                                 const TakeFile& take);

// What stands in the state directory and is neither held nor known to be left out.
Result<std::vector<std::string>> unknown_names(const Places& places);

}  // namespace atl::cli::backup
