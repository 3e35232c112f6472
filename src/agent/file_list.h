// The entries of a directory, and of those beneath it, page by page.
#pragma once

#include "agent/file_protocol.h"
#include "agent/file_wire.h"
#include "base/fd.h"
#include "base/result.h"

namespace atl::agent {

Result<void> list_directory(const FileRequest& request, FileWire& wire);

Result<void> list_tree(const FileRequest& request, FileWire& wire);

// A directory for reading; its own name is followed.
Result<Fd> open_directory(const std::string& path);
uint32_t effective_limit(const FileRequest& request);

}  // namespace atl::agent
