// Operation kWrite: a whole file, from the records that arrive.
#pragma once

#include "agent/file_protocol.h"
#include "agent/file_wire.h"
#include "base/result.h"

namespace atl::agent {

// Gives DoneFlags.
Result<uint8_t> write_file(const FileRequest& request, FileWire& wire);

}  // namespace atl::agent
