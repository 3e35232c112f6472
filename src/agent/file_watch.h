// Operation kWatch: changes in a directory, or beneath it, until the channel ends. What happens in
// a directory before it is watched, because it is new, may be told twice, but is not missed.
#pragma once

#include "agent/file_protocol.h"
#include "agent/file_wire.h"
#include "base/result.h"

namespace atl::agent {

Result<void> watch_files(const FileRequest& request, FileWire& wire);

}  // namespace atl::agent
