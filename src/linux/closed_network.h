// A network namespace without a way out, in which every attempt is seen. It has `lo` only, on which
// every address there is counts as local, and rules:
//  - 127.0.0.0/8, ::1 and the namespace's own address are left alone;
//  - TCP to the ranges that stand for names, to the ranges that were opened, and to one port of the
//    own address goes to one listening socket, port 53 to another;
//  - all else is counted, logged and refused at once.
// Whoever holds the sockets answers; while nobody does, the kernel refuses.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "linux/nftables.h"

namespace atl::linux {

struct ClosedNetwork {
  std::array<unsigned char, 4> own_v4, range_v4;
  unsigned range_v4_bits;
  std::array<unsigned char, 16> own_v6, range_v6;
  unsigned range_v6_bits;
  uint16_t connection_port, dns_port;  // of the listening sockets, at the own addresses
  uint16_t proxy_port;                 // of the own addresses, handed to the connection port
};

// In the caller's network namespace, which must be new, with capabilities over it. `lo` is up
// afterwards.
Result<void> close_network(const ClosedNetwork& network);

// Where open_ranges() finds the sets of ranges whose TCP is handed over too; empty at first.
inline constexpr std::string_view kNetworkTable = "atoll";
inline constexpr std::string_view kRangesV4 = "ranges4", kRangesV6 = "ranges6";

enum class NetworkSocket : unsigned char {
  kConnections4,
  kConnections6,
  kDns4,
  kDns6,
  kDnsStream4,
  kDnsStream6,
  kRefusals
};
inline constexpr size_t kNetworkSockets = 7;
using NetworkSockets = std::array<Fd, kNetworkSockets>;

// The sockets to which all goes, in the order of NetworkSocket, not blocking. kRefusals is of
// NETLINK_NETFILTER: messages of nfnetlink_log about what was refused, with sequence numbers.
// EADDRINUSE or EBUSY: somebody has them.
Result<NetworkSockets> make_network_sockets(const ClosedNetwork& network);

}  // namespace atl::linux
