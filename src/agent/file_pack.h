// Operation kPack: a tree as a stream of entries, each with its bytes. Sparse files are sent as
// plain bytes; sockets, FIFOs and devices are left out.
#pragma once

#include "agent/file_protocol.h"
#include "agent/file_wire.h"
#include "base/result.h"

namespace atl::agent {

Result<void> pack_tree(const FileRequest& request, FileWire& wire);

// Operation kPick: of a tree that nobody changes, what is named. All names come before the first
// answer.
Result<void> pick_files(const FileRequest& request, FileWire& wire);

}  // namespace atl::agent
