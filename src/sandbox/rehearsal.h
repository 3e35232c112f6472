// Rehearsals: what is done over the stream of an agent before its sandbox has a user, so that
// nothing is done for the first time when one waits for it.
//
// An understudy is a second interpreter that waits in a machine which is laid down. Where another
// begins with that memory, it runs a program to its end in place of the first: behind an emulated
// kernel everything on that way is slow when it is done for the first time, and to start an
// interpreter for it would cost more memory than all the rest.
#pragma once

#include <string>
#include <vector>

#include "agent/protocol.h"
#include "async/task.h"
#include "isolate/agent_link.h"

namespace atl::sandbox {

inline constexpr uint32_t kUnderstudy = 1'000'001;  // its exec, whose number no user's has

// The next frame of a type and number. Frames about input are nothing to wait for, nor is what is
// left of a program that was run ahead; any other means that the program is not what it should be.
Task<Result<agent::Frame>> expect(isolate::AgentLink& link, agent::FrameType type, uint32_t number);

// Until a waiting program says that it is ready, having rehearsed first if it is asked to. A copy
// waits where its zygote did, and makes itself ready when it is told to.
Task<Result<void>> await_ready(isolate::AgentLink& link, uint32_t number, bool asked);

// Another one, from its start to its end.
Task<Result<void>> run_through(isolate::AgentLink& link, agent::Start program);

Task<Result<void>> start_understudy(isolate::AgentLink& link, agent::Start program);
// To its end, with this environment.
Task<Result<void>> run_understudy(isolate::AgentLink& link, std::vector<std::string> environment);

}  // namespace atl::sandbox
