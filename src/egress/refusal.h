// What the kernel says of a packet that it refused: messages of nfnetlink_log, each with the first
// bytes of the packet and a number. Numbers that are missing are packets whose messages were lost.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "egress/address.h"

namespace atl::egress {

struct Refusal {
  uint32_t sequence = 0;
  Address destination;
  uint16_t port = 0;  // 0: the protocol has none
  uint16_t source_port = 0;
  std::string protocol = {};
};

// The refusals of one datagram of the netlink socket. What cannot be read is left out; the gap in
// the numbers remains.
std::vector<Refusal> parse_refusals(std::span<const unsigned char> datagram);

}  // namespace atl::egress
