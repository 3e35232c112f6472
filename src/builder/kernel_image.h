// A Linux kernel as packages bring it (a bzImage, packed with LZ4) and as a machine starts it
// soonest: unpacked, when the image is built and not at each boot. See Documentation/x86/boot.rst
// of the kernel.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::builder {

// The ELF file inside. kUnsupported: it is packed in another way.
Result<std::string> unpack_kernel(std::string_view packed);

// Puts boot/vmlinux beside the one kernel in boot/ of the tree, if there is one that can be
// unpacked.
Result<void> add_unpacked_kernel(int root);

}  // namespace atl::builder
