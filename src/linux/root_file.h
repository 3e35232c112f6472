// Files that the kernel or root is going to parse: nobody but root may have written them.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

// A regular file in an open directory that only root can write; EPERM for any other.
Result<Fd> open_root_file(int directory, const std::string& name, int flags);

}  // namespace atl::linux
