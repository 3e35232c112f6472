// Operations that change what a name stands for, or what is known about a file.
#pragma once

#include "agent/file_protocol.h"
#include "agent/file_wire.h"
#include "base/result.h"

namespace atl::agent {

// Each gives DoneFlags.
Result<uint8_t> move_file(const FileRequest& request, FileWire& wire);
Result<uint8_t> make_directory_at(const FileRequest& request, FileWire& wire);
Result<uint8_t> change_file(const FileRequest& request, FileWire& wire);

}  // namespace atl::agent
