// What a file worker does once it is behind its walls: one request, then it ends. See
// file_protocol.h; process_start.h puts up the walls.
#pragma once

#include <string_view>

#include "agent/file_protocol.h"

namespace atl::agent {

[[noreturn]] void run_file_worker(int socket, const FileRequest& request);

// A worker that could not be made.
void refuse_file_work(int socket, std::string_view operation, int system_errno);

}  // namespace atl::agent
