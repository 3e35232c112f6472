// Linked before the warden's library: a warden that speaks another version.
#include "warden/protocol.h"

namespace atl::warden {

uint16_t spoken_version() { return ATOLL_SPOKEN_VERSION; }

}  // namespace atl::warden
