// Removal of a file or a whole tree, however deep and wide: nothing is held for each level but a
// few names.
#pragma once

#include <string>

#include "agent/file_protocol.h"
#include "base/result.h"

namespace atl::agent {

Result<void> remove_file(const FileRequest& request);

// A name in a directory, with all that is beneath it.
Result<void> remove_whole(int directory, const std::string& name);

}  // namespace atl::agent
