// The root that a stage sees: a tmpfs with /usr of this host, read-only, the few files of /etc that
// the stage needs, a /dev of harmless nodes, a /proc of its own, and /build.
#pragma once

#include "base/result.h"
#include "builder/jail.h"

namespace atl::builder {

// In a mount and pid namespace of the caller's own, as root of the host; the caller cannot come
// back.
Result<void> enter_jail_root(const Ground& ground, const Jail& jail);

}  // namespace atl::builder
