// readdir(3) over a directory that the caller has open; without "." and "..".
#pragma once

#include <dirent.h>

#include <utility>

#include "base/result.h"

namespace atl::agent {

class DirectoryReader {
 public:
  // From the first name on. `directory` stays the caller's, but shares its position with this.
  static Result<DirectoryReader> open(int directory);
  DirectoryReader(DirectoryReader&& other) noexcept
      : stream_(std::exchange(other.stream_, nullptr)) {}
  DirectoryReader& operator=(DirectoryReader&&) = delete;
  ~DirectoryReader();

  // Valid until the next call; nothing at the end.
  const dirent* next();

 private:
  explicit DirectoryReader(DIR* stream) : stream_(stream) {}
  DIR* stream_;
};

}  // namespace atl::agent
