// Farewell: what stands in the place of a hello where there is no agent any more. Behind a wall
// with a kernel of its own the agent dies with what it runs in; who kept that knows why, and tells
// whoever connects next.
#pragma once

#include <string>
#include <string_view>

#include "agent/exit.h"
#include "base/result.h"

namespace atl::agent {

struct Farewell {
  uint16_t version;
  Cause cause;  // kMemory: the kernel ended it, at the limit around the whole
};

std::string encode(const Farewell& farewell);
Result<Farewell> decode_farewell(std::string_view payload);

// For who kept it: tells the next who connects, if it was memory and somebody comes soon.
void say_farewell(int listener, int memory_events);

}  // namespace atl::agent
