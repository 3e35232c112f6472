#include "egress/refusal.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <netinet/in.h>
#include <optional>

namespace atl::egress {
namespace {

using Bytes = std::span<const unsigned char>;

constexpr size_t kV4HeaderBytes = 20, kV6HeaderBytes = 40;

struct Attributes {
  Bytes packet;
  std::optional<uint32_t> sequence;
};

Attributes read_attributes(Bytes bytes) {
  Attributes found;
  while (bytes.size() >= sizeof(nlattr)) {
    nlattr head;
    std::memcpy(&head, bytes.data(), sizeof head);
    if (head.nla_len < sizeof head || head.nla_len > bytes.size()) break;
    Bytes value = bytes.subspan(sizeof head, head.nla_len - sizeof head);
    unsigned type = head.nla_type & NLA_TYPE_MASK;
    if (type == NFULA_PAYLOAD) found.packet = value;
    if (type == NFULA_SEQ && value.size() == sizeof(uint32_t)) {
      uint32_t number;
      std::memcpy(&number, value.data(), sizeof number);
      found.sequence = ntohl(number);
    }
    size_t step = NLMSG_ALIGN(head.nla_len);
    bytes = bytes.subspan(std::min(step, bytes.size()));
  }
  return found;
}

std::string protocol_text(uint8_t number) {
  switch (number) {
    case IPPROTO_TCP:
      return "tcp";
    case IPPROTO_UDP:
      return "udp";
    case IPPROTO_ICMP:
      return "icmp";
    case IPPROTO_ICMPV6:
      return "icmpv6";
    case IPPROTO_SCTP:
      return "sctp";
    default:
      return "ip " + std::to_string(number);
  }
}

void read_ports(Bytes packet, size_t transport, uint8_t protocol, Refusal& refusal) {
  bool has_ports = protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP;
  if (!has_ports || packet.size() < transport + 4) return;
  refusal.source_port = static_cast<uint16_t>(packet[transport] << 8 | packet[transport + 1]);
  refusal.port = static_cast<uint16_t>(packet[transport + 2] << 8 | packet[transport + 3]);
}

std::optional<Refusal> read_packet(Bytes packet, uint32_t sequence) {
  if (packet.size() >= kV4HeaderBytes && packet[0] >> 4 == 4) {
    Refusal refusal{.sequence = sequence, .destination = Address::v4(packet.subspan<16, 4>())};
    refusal.protocol = protocol_text(packet[9]);
    read_ports(packet, size_t{4} * (packet[0] & 0xf), packet[9], refusal);
    return refusal;
  }
  if (packet.size() >= kV6HeaderBytes && packet[0] >> 4 == 6) {
    Refusal refusal{.sequence = sequence, .destination = Address::v6(packet.subspan<24, 16>())};
    refusal.protocol = protocol_text(packet[6]);
    read_ports(packet, kV6HeaderBytes, packet[6], refusal);
    return refusal;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Refusal> parse_refusals(Bytes datagram) {
  std::vector<Refusal> refusals;
  while (datagram.size() >= sizeof(nlmsghdr)) {
    nlmsghdr head;
    std::memcpy(&head, datagram.data(), sizeof head);
    constexpr size_t kHeads = sizeof(nlmsghdr) + sizeof(nfgenmsg);
    if (head.nlmsg_len < kHeads || head.nlmsg_len > datagram.size()) break;
    if (head.nlmsg_type == (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET)) {
      Attributes found = read_attributes(datagram.subspan(kHeads, head.nlmsg_len - kHeads));
      auto refusal = read_packet(found.packet, found.sequence.value_or(0));
      if (refusal) refusals.push_back(std::move(*refusal));
    }
    size_t step = NLMSG_ALIGN(head.nlmsg_len);
    datagram = datagram.subspan(std::min(step, datagram.size()));
  }
  return refusals;
}

}  // namespace atl::egress
