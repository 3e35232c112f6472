#include "warden/protocol.h"

namespace atl::warden {

uint16_t spoken_version() { return 8; }

}  // namespace atl::warden
