#include "linux/nftables.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <array>
#include <vector>

namespace atl::linux {
namespace {

constexpr uint32_t kRegister = NFT_REG_1, kPortRegister = NFT_REG_2;
constexpr uint32_t kV4Destination = 16, kV6Destination = 24;  // offsets in the header
constexpr uint32_t kPortOffset = 2;

uint16_t message_type(unsigned type) {
  return static_cast<uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type);
}

// Not htons(): <linux/netfilter.h> and <arpa/inet.h> define the same things.
nfgenmsg header(uint8_t family, uint16_t resource = 0) {
  return {.nfgen_family = family, .version = NFNETLINK_V0, .res_id = __builtin_bswap16(resource)};
}

std::vector<unsigned char> make_mask(size_t bytes, unsigned bits) {
  std::vector<unsigned char> mask(bytes, 0);
  for (unsigned bit = 0; bit < bits; ++bit)
    mask[bit / 8] = static_cast<unsigned char>(mask[bit / 8] | 0x80u >> (bit % 8));
  return mask;
}

// The first address behind a prefix; nothing if it reaches to the last address there is.
std::vector<unsigned char> end_of(const AddressPrefix& range) {
  std::vector<unsigned char> end(range.first.begin(), range.first.end());
  if (range.bits == 0) return {};
  unsigned carry = 1u << (7 - (range.bits - 1) % 8);
  for (size_t at = (range.bits - 1) / 8 + 1; at-- > 0 && carry > 0;) {
    carry += end[at];
    end[at] = static_cast<unsigned char>(carry & 0xff);
    carry >>= 8;
  }
  return carry > 0 ? std::vector<unsigned char>() : end;
}

void add_element(NetlinkMessages& messages, std::span<const unsigned char> key, uint32_t flags) {
  messages.begin_nest(NFTA_LIST_ELEM);
  messages.begin_nest(NFTA_SET_ELEM_KEY);
  messages.attribute(NFTA_DATA_VALUE, key);
  messages.end_nest();
  if (flags != 0) messages.be32(NFTA_SET_ELEM_FLAGS, flags);
  messages.end_nest();
}

std::array<unsigned char, 2> port_bytes(uint16_t port) {
  return {static_cast<unsigned char>(port >> 8), static_cast<unsigned char>(port & 0xff)};
}

}  // namespace

NftTable::NftTable(std::string_view name) : name_(name) {
  messages_.begin(NFNL_MSG_BATCH_BEGIN, 0, header(NFPROTO_UNSPEC, NFNL_SUBSYS_NFTABLES));
  messages_.begin(message_type(NFT_MSG_NEWTABLE), NLM_F_CREATE | NLM_F_EXCL, header(NFPROTO_INET));
  messages_.text(NFTA_TABLE_NAME, name_);
}

void NftTable::range_set(std::string_view name, IpFamily family) {
  constexpr uint32_t kTypeOfV4 = 7, kTypeOfV6 = 8;  // what the program nft shows it as
  bool is_v4 = family == IpFamily::kV4;
  messages_.begin(message_type(NFT_MSG_NEWSET), NLM_F_CREATE | NLM_F_EXCL, header(NFPROTO_INET));
  messages_.text(NFTA_SET_TABLE, name_);
  messages_.text(NFTA_SET_NAME, name);
  messages_.be32(NFTA_SET_FLAGS, NFT_SET_INTERVAL);
  messages_.be32(NFTA_SET_KEY_TYPE, is_v4 ? kTypeOfV4 : kTypeOfV6);
  messages_.be32(NFTA_SET_KEY_LEN, is_v4 ? 4 : 16);
  messages_.be32(NFTA_SET_ID, is_v4 ? 1 : 2);
}

void NftTable::chain(std::string_view name, Hook hook, int priority, Verdict otherwise) {
  chain_ = name;
  messages_.begin(message_type(NFT_MSG_NEWCHAIN), NLM_F_CREATE | NLM_F_EXCL, header(NFPROTO_INET));
  messages_.text(NFTA_CHAIN_TABLE, name_);
  messages_.text(NFTA_CHAIN_NAME, chain_);
  messages_.begin_nest(NFTA_CHAIN_HOOK);
  messages_.be32(NFTA_HOOK_HOOKNUM, static_cast<uint32_t>(hook));
  messages_.be32(NFTA_HOOK_PRIORITY, static_cast<uint32_t>(priority));
  messages_.end_nest();
  messages_.text(NFTA_CHAIN_TYPE, "filter");
  messages_.be32(NFTA_CHAIN_POLICY, static_cast<uint32_t>(otherwise));
}

void NftTable::begin_rule() {
  messages_.begin(message_type(NFT_MSG_NEWRULE), NLM_F_CREATE | NLM_F_APPEND, header(NFPROTO_INET));
  messages_.text(NFTA_RULE_TABLE, name_);
  messages_.text(NFTA_RULE_CHAIN, chain_);
  messages_.begin_nest(NFTA_RULE_EXPRESSIONS);
}

void NftTable::end_rule() { messages_.end_nest(); }

void NftTable::begin_expression(std::string_view name) {
  messages_.begin_nest(NFTA_LIST_ELEM);
  messages_.text(NFTA_EXPR_NAME, name);
  messages_.begin_nest(NFTA_EXPR_DATA);
}

void NftTable::end_expression() {
  messages_.end_nest();
  messages_.end_nest();
}

void NftTable::compare(std::span<const unsigned char> value) {
  begin_expression("cmp");
  messages_.be32(NFTA_CMP_SREG, kRegister);
  messages_.be32(NFTA_CMP_OP, NFT_CMP_EQ);
  messages_.begin_nest(NFTA_CMP_DATA);
  messages_.attribute(NFTA_DATA_VALUE, value);
  messages_.end_nest();
  end_expression();
}

void NftTable::is_family(IpFamily family) {
  begin_expression("meta");
  messages_.be32(NFTA_META_DREG, kRegister);
  messages_.be32(NFTA_META_KEY, NFT_META_NFPROTO);
  end_expression();
  unsigned char value = family == IpFamily::kV4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
  compare({&value, 1});
}

void NftTable::is_protocol(uint8_t protocol) {
  begin_expression("meta");
  messages_.be32(NFTA_META_DREG, kRegister);
  messages_.be32(NFTA_META_KEY, NFT_META_L4PROTO);
  end_expression();
  compare({&protocol, 1});
}

void NftTable::load_payload(uint32_t base, uint32_t offset, uint32_t bytes) {
  begin_expression("payload");
  messages_.be32(NFTA_PAYLOAD_DREG, kRegister);
  messages_.be32(NFTA_PAYLOAD_BASE, base);
  messages_.be32(NFTA_PAYLOAD_OFFSET, offset);
  messages_.be32(NFTA_PAYLOAD_LEN, bytes);
  end_expression();
}

void NftTable::is_destination(std::span<const unsigned char> address, unsigned prefix_bits) {
  bool is_v4 = address.size() == 4;
  is_family(is_v4 ? IpFamily::kV4 : IpFamily::kV6);
  auto bytes = static_cast<uint32_t>(address.size());
  load_payload(NFT_PAYLOAD_NETWORK_HEADER, is_v4 ? kV4Destination : kV6Destination, bytes);
  if (prefix_bits < bytes * 8) {
    begin_expression("bitwise");
    messages_.be32(NFTA_BITWISE_SREG, kRegister);
    messages_.be32(NFTA_BITWISE_DREG, kRegister);
    messages_.be32(NFTA_BITWISE_LEN, bytes);
    std::vector<unsigned char> mask = make_mask(bytes, prefix_bits), zeros(bytes, 0);
    messages_.begin_nest(NFTA_BITWISE_MASK);
    messages_.attribute(NFTA_DATA_VALUE, std::span<const unsigned char>(mask));
    messages_.end_nest();
    messages_.begin_nest(NFTA_BITWISE_XOR);
    messages_.attribute(NFTA_DATA_VALUE, std::span<const unsigned char>(zeros));
    messages_.end_nest();
    end_expression();
  }
  compare(address);
}

void NftTable::is_destination_in(std::string_view set, IpFamily family) {
  is_family(family);
  bool is_v4 = family == IpFamily::kV4;
  load_payload(NFT_PAYLOAD_NETWORK_HEADER, is_v4 ? kV4Destination : kV6Destination, is_v4 ? 4 : 16);
  begin_expression("lookup");
  messages_.text(NFTA_LOOKUP_SET, set);
  messages_.be32(NFTA_LOOKUP_SREG, kRegister);
  end_expression();
}

void NftTable::is_destination_port(uint16_t port) {
  load_payload(NFT_PAYLOAD_TRANSPORT_HEADER, kPortOffset, 2);
  compare(port_bytes(port));
}

void NftTable::count_and_log(uint16_t group, uint32_t packet_bytes) {
  begin_expression("counter");
  end_expression();
  begin_expression("log");
  messages_.be16(NFTA_LOG_GROUP, group);
  messages_.be32(NFTA_LOG_SNAPLEN, packet_bytes);
  messages_.be16(NFTA_LOG_QTHRESHOLD, 1);
  end_expression();
}

void NftTable::load_value(uint32_t target, std::span<const unsigned char> value) {
  begin_expression("immediate");
  messages_.be32(NFTA_IMMEDIATE_DREG, target);
  messages_.begin_nest(NFTA_IMMEDIATE_DATA);
  messages_.attribute(NFTA_DATA_VALUE, value);
  messages_.end_nest();
  end_expression();
}

void NftTable::hand_to(std::span<const unsigned char> address, uint16_t port) {
  load_value(kRegister, address);
  load_value(kPortRegister, port_bytes(port));
  begin_expression("tproxy");
  messages_.be32(NFTA_TPROXY_FAMILY, address.size() == 4 ? NFPROTO_IPV4 : NFPROTO_IPV6);
  messages_.be32(NFTA_TPROXY_REG_ADDR, kRegister);
  messages_.be32(NFTA_TPROXY_REG_PORT, kPortRegister);
  end_expression();
}

void NftTable::verdict(Verdict verdict) {
  begin_expression("immediate");
  messages_.be32(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
  messages_.begin_nest(NFTA_IMMEDIATE_DATA);
  messages_.begin_nest(NFTA_DATA_VERDICT);
  messages_.be32(NFTA_VERDICT_CODE, static_cast<uint32_t>(verdict));
  messages_.end_nest();
  messages_.end_nest();
  end_expression();
}

void NftTable::reject(uint32_t type, uint8_t code) {
  begin_expression("reject");
  messages_.be32(NFTA_REJECT_TYPE, type);
  messages_.u8(NFTA_REJECT_ICMP_CODE, code);
  end_expression();
}

void NftTable::reset_connection() { reject(NFT_REJECT_TCP_RST, 0); }

void NftTable::say_unreachable() {
  reject(NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_PORT_UNREACH);
}

Result<void> NftTable::install() {
  messages_.acknowledge();
  messages_.begin(NFNL_MSG_BATCH_END, 0, header(NFPROTO_UNSPEC, NFNL_SUBSYS_NFTABLES));
  ATOLL_TRY(Fd socket, open_netlink(NETLINK_NETFILTER));
  auto sent = messages_.send(socket.get());
  if (!sent) return std::move(sent).error().with_context("install rules");
  return {};
}

Result<void> replace_ranges(std::string_view table, std::string_view set,
                            std::span<const AddressPrefix> ranges) {
  NetlinkMessages messages;
  messages.begin(NFNL_MSG_BATCH_BEGIN, 0, header(NFPROTO_UNSPEC, NFNL_SUBSYS_NFTABLES));
  // Without a list: all of them.
  messages.begin(message_type(NFT_MSG_DELSETELEM), 0, header(NFPROTO_INET));
  messages.text(NFTA_SET_ELEM_LIST_TABLE, table);
  messages.text(NFTA_SET_ELEM_LIST_SET, set);
  if (!ranges.empty()) {
    messages.begin(message_type(NFT_MSG_NEWSETELEM), NLM_F_CREATE, header(NFPROTO_INET));
    messages.text(NFTA_SET_ELEM_LIST_TABLE, table);
    messages.text(NFTA_SET_ELEM_LIST_SET, set);
    messages.begin_nest(NFTA_SET_ELEM_LIST_ELEMENTS);
    for (const AddressPrefix& range : ranges) {
      add_element(messages, range.first, 0);
      std::vector<unsigned char> end = end_of(range);
      if (!end.empty()) add_element(messages, end, NFT_SET_ELEM_INTERVAL_END);
    }
    messages.end_nest();
  }
  messages.acknowledge();
  messages.begin(NFNL_MSG_BATCH_END, 0, header(NFPROTO_UNSPEC, NFNL_SUBSYS_NFTABLES));
  ATOLL_TRY(Fd socket, open_netlink(NETLINK_NETFILTER));
  auto sent = messages.send(socket.get());
  if (!sent) return std::move(sent).error().with_context("replace ranges");
  return {};
}

}  // namespace atl::linux
