// A network of `lo` alone in which TCP to every address of IPv4 but the own one and 127.0.0.0/8
// arrives at one listening socket, whatever its port; the accepted socket's own address is where
// the program wanted to go. For a kernel that has no packet filter: a program of the kernel
// (BPF_PROG_TYPE_SK_LOOKUP) chooses the socket.
#pragma once

#include <array>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

// Gives `lo` the own address, and makes every other one local.
Result<void> own_all_addresses(const std::array<unsigned char, 4>& own);

// In the caller's network namespace, until what is returned is closed.
Result<Fd> catch_connections(const std::array<unsigned char, 4>& own, int listener);

}  // namespace atl::linux
