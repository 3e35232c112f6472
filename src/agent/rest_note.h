// What an agent behind a wall of its own (a machine, gVisor's sentry) tells whoever passes its
// stream on: nothing runs, nothing waits to be told, and so much of the stream has been read. One
// who has passed on no more than that knows that all inside stands still until the next byte.
#pragma once

#include <cstdint>

#include "agent/birth_record.h"

namespace atl::agent {

// A SEQPACKET socket that it is born with there, and nowhere else.
inline constexpr int kRestFd = kLastBirthFd + 1;

struct RestNote {
  uint64_t connections = 0;  // that were ever accepted
  uint64_t bytes = 0;        // that were read of the last

  bool operator==(const RestNote&) const = default;
};
static_assert(sizeof(RestNote) == 16);

}  // namespace atl::agent
