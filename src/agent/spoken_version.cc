#include "agent/spoken_version.h"

#include "agent/protocol.h"

namespace atl::agent {

uint16_t spoken_version() { return kProtocolVersion; }

}  // namespace atl::agent
