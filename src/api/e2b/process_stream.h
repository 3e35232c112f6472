// What a process prints and how it ends, as a stream of events: its start, data, its end. The first
// is the start; while it is silent the client hears that the server is there.
#pragma once

#include <memory>

#include "api/e2b/rpc.h"
#include "api/v1/exec_event.h"
#include "sandbox/exec.h"

namespace atl::api::e2b {

// From a position on. When the sandbox ends first, the stream is cut off.
http::Task<Reply> follow_process(Call& call, std::shared_ptr<sandbox::Exec> exec,
                                 v1::OutputPosition position, Patience patience);

}  // namespace atl::api::e2b
