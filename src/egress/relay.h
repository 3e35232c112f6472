// One TCP connection of a sandbox, from the moment it is accepted: which name it is for, whether a
// rule allows it, whether its first bytes ask for the same name, which address is dialled, and then
// bytes in both directions until both sides are done.
#pragma once

#include <memory>

#include "base/fd.h"
#include "egress/gate.h"
#include "egress/task.h"

namespace atl::egress {

Task<void> relay_connection(std::shared_ptr<Gate> gate, Fd accepted);

}  // namespace atl::egress
