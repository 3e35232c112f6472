// Search beneath a directory by names and contents, within limits of entries, bytes and time.
#pragma once

#include "agent/file_protocol.h"
#include "agent/file_wire.h"
#include "base/result.h"

namespace atl::agent {

// Gives DoneFlags.
Result<uint8_t> find_files(const FileRequest& request, FileWire& wire);

}  // namespace atl::agent
