// What this host can enforce. A launch that asks for more is refused before anything is made: a
// limit that does not hold is worse than none, because somebody relies on it.
#pragma once

#include "warden/host.h"
#include "warden/protocol.h"

namespace atl::warden {

// The first thing asked for that cannot be had here, or kNone.
Refusal find_refusal(const Host& host, const Request& request);

// Bits of each Extra that this host has.
uint16_t find_extras(const Host& host);

bool has_time_namespaces();

}  // namespace atl::warden
