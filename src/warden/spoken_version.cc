#include "warden/protocol.h"

namespace atl::warden {

uint16_t spoken_version() { return 10; }

}  // namespace atl::warden
