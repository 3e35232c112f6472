// GET …/execs/{exec}/output: what an exec printed, as bytes or as server-sent events, so far or
// until its end. Any number of clients read at once; each holds one piece in memory.
#pragma once

#include "api/router.h"
#include "api/v1/exec_event.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

void add_exec_output_route(Router& router, sandbox::Sandboxes& sandboxes);

bool wants_events(const http::Request& request);

// Answers with the events of an exec from a position on, to its end. The first one, `start`, shows
// a new exec.
enum class FirstEvent : unsigned char { kStart, kOutput };
http::Task<Reply> follow_exec(Call& call, std::shared_ptr<sandbox::Exec> exec,
                              OutputPosition position, FirstEvent first);

}  // namespace atl::api::v1
