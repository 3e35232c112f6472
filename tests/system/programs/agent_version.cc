// Linked before the agent's library: an agent that speaks another version.
#include "agent/spoken_version.h"

namespace atl::agent {

uint16_t spoken_version() { return ATOLL_SPOKEN_VERSION; }

}  // namespace atl::agent
