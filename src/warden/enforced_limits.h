// The limits that are in force for an isolate, and what it uses, each where the kernel keeps it:
// its groups and the quota of its layer.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "linux/process_facts.h"
#include "linux/resource_usage.h"
#include "warden/host.h"
#include "warden/protocol.h"

namespace atl::warden {

// In the fields of a request; all others are zero.
Result<Request> read_enforced_limits(const Host& host, const SandboxId& id);

// What the programs inside use of them now.
Result<linux::ResourceUsage> read_usage(const Host& host, const SandboxId& id);

// "limits.memory_bytes" and so on, as the receipt shows them.
linux::Facts limit_facts(const Request& limits);

// Gives an isolate that exists other limits: all of them, or after any failure those that it had.
// EBUSY: it uses more memory than that.
Result<void> change_limits(const Host& host, const SandboxId& id, const Request& limits);

}  // namespace atl::warden
