#include "warden/protocol.h"

namespace atl::warden {

uint16_t spoken_version() { return 6; }

}  // namespace atl::warden
