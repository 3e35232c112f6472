// WatchedFiles: files of the host that nothing may change while the selftest runs. After each
// victim their inodes, sizes and times are compared, which costs little; at the end their bytes
// too, because a hole in the kernel's page cache changes no time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace atl::cli::selftest {

class WatchedFiles {
 public:
  // A path that is not there is watched too: it must not appear.
  static Result<WatchedFiles> watch(const std::vector<std::string>& paths);

  // What was changed since the last call.
  std::vector<std::string> take_changes();
  // Whose bytes are not those of the beginning.
  Result<std::vector<std::string>> find_other_bytes() const;

 private:
  struct Entry {
    std::string stamp;   // empty: not there
    std::string digest;  // empty: not a regular file
  };
  WatchedFiles() = default;

  std::map<std::string, Entry> files_;
};

// Every regular file beneath a directory, as paths; a link is not followed.
std::vector<std::string> files_beneath(const std::string& directory);

}  // namespace atl::cli::selftest
