// What every image gets, whatever it came from: places for the mounts of a sandbox, a user with id
// 1000, the small files of /etc that a sandbox's identity is read from, and a quicker login shell.
#pragma once

#include "base/result.h"
#include "builder/tree.h"

namespace atl::builder {

Result<void> finish_tree(Tree& tree);

}  // namespace atl::builder
