// Where a request's path leads: the directory that holds it, by descriptor, and the last part of
// it, so that what an operation looks at and what it changes are in the same directory, whatever
// programs rename meanwhile.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace atl::agent {

// `path` without slashes at its end; "/" stays.
std::string_view trimmed(std::string_view path);
// Behind the last slash; "." of the root.
std::string_view last_part(std::string_view path);
std::string join_path(std::string_view directory, std::string_view name);

// Follows symbolic links, but none of /proc's to another process's files. `flags` as open(2).
Fd open_any(int directory, const std::string& path, int flags);
// Follows no link and never leaves `directory`.
Fd open_beneath(int directory, const std::string& path, int flags);

struct Place {
  Fd directory;      // O_PATH
  std::string name;  // "." for the root
  std::string path;  // as the request has it
};
Result<Place> find_place(std::string_view path);

// Names a descriptor's file itself, for calls that take no descriptor made by O_PATH.
std::string descriptor_path(int fd);

// Missing directories on the way to a new file. They are made only when it is about to get its
// name, and are removed again if it does not get it.
class MissingDirectories {
 public:
  // Finds the nearest directory that is there.
  static Result<MissingDirectories> create(std::string_view path);
  ~MissingDirectories();
  MissingDirectories(MissingDirectories&& other) noexcept;
  MissingDirectories& operator=(MissingDirectories&&) = delete;

  int nearest() const { return nearest_.get(); }
  bool missing() const { return !missing_.empty(); }
  // The directory of the path, made if need be.
  Result<Fd> make();
  void keep() { made_.clear(); }

 private:
  MissingDirectories() = default;
  Fd nearest_;
  std::string missing_;  // relative to it; empty: nothing
  std::string made_;     // the part of it that was made here
  size_t first_made_ = 0;
};

}  // namespace atl::agent
