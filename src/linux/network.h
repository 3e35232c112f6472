// Network interfaces by ioctl: see netdevice(7).
#pragma once

#include "base/result.h"

namespace atl::linux {

Result<void> raise_interface(const char* name);

}  // namespace atl::linux
