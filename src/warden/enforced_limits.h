// The limits that are in force for an isolate, read back from where each is kept: its groups and
// the quota of its layer.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "linux/process_facts.h"
#include "warden/host.h"
#include "warden/protocol.h"

namespace atl::warden {

// "limits.memory_bytes" and so on, in the order and with the values of wanted_limits() if all is
// well.
Result<linux::Facts> read_enforced_limits(const Host& host, const SandboxId& id);
linux::Facts wanted_limits(const Request& request);

}  // namespace atl::warden
