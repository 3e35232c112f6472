// Operations that look at one file.
#pragma once

#include "agent/file_protocol.h"
#include "agent/file_wire.h"
#include "base/fd.h"
#include "base/result.h"

namespace atl::agent {

Result<void> stat_file(const FileRequest& request, FileWire& wire);
Result<void> read_range(const FileRequest& request, FileWire& wire);

// A regular file for reading. Others are not even opened: a FIFO would wake its writer, a device
// might do anything. `flags`: O_NOFOLLOW or none.
Result<Fd> open_regular(int directory, const std::string& name, int flags);

// Sends exactly `length` bytes of kBytes; a file that turns out shorter is an error.
Result<void> send_range(int file, uint64_t offset, uint64_t length, FileWire& wire);

}  // namespace atl::agent
