// iptables(8) without the program, as far as gVisor's kernel has it: TCP to every address of IPv4
// but 127.0.0.0/8 and the sandbox's own goes to one port. The accepted socket says where the
// program wanted to go (SO_ORIGINAL_DST).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace atl::gvisor {

// The table `nat` as setsockopt(2) takes it.
std::string redirect_table(const std::array<unsigned char, 4>& own, uint16_t port);

// With CAP_NET_ADMIN and CAP_NET_RAW.
Result<void> redirect_connections(const std::array<unsigned char, 4>& own, uint16_t port);

}  // namespace atl::gvisor
