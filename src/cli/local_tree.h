// LocalTree: a directory of the user's that takes files from a sandbox. The names come from
// strangers, so nothing is ever made outside of it and no symbolic link in it is followed.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace atl::cli {

class LocalTree {
 public:
  // Makes the directory if it is not there; its parent must be.
  static Result<LocalTree> open(const std::string& directory);

  // With the directories above it. Replaces a file, never a directory; the umask applies.
  Result<Fd> create_file(std::string_view name, unsigned mode);
  Result<void> make_directory(std::string_view name);
  // kDenied for a target that leads out of the tree.
  Result<void> make_link(std::string_view name, const std::string& target);

 private:
  explicit LocalTree(Fd root) : root_(std::move(root)) {}

  struct Place {
    Fd directory;
    std::string name;
  };
  Result<Place> parent_of(std::string_view name);

  Fd root_;
};

// A relative path of real names without "." at its front and "/" at its end; empty for the tree
// itself; kDenied for one that is absolute or has "..".
Result<std::string> plain_name(std::string_view name);

}  // namespace atl::cli
