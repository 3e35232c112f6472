#include "linux/closed_network.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <cstring>
#include <netinet/in.h>

#include "linux/network.h"

namespace atl::linux {
namespace {

constexpr uint32_t kLoopbackIndex = 1;  // in every new namespace
constexpr uint16_t kLogGroup = 1;
constexpr uint32_t kLoggedBytes = 64;  // the headers
constexpr int kBacklog = 256;
constexpr int kRefusalsBufferBytes = 1 << 20;
constexpr int kBeforeFilters = -150;
constexpr std::array<unsigned char, 4> kLoopbackV4 = {127, 0, 0, 0};
constexpr std::array<unsigned char, 16> kLoopbackV6 = {0, 0, 0, 0, 0, 0, 0, 0,
                                                       0, 0, 0, 0, 0, 0, 0, 1};

using Bytes = std::span<const unsigned char>;

struct Side {
  Bytes own, range, loopback;
  unsigned range_bits, loopback_bits;

  IpFamily family() const { return own.size() == 4 ? IpFamily::kV4 : IpFamily::kV6; }
  unsigned all_bits() const { return static_cast<unsigned>(own.size() * 8); }
  std::string_view opened() const { return own.size() == 4 ? kRangesV4 : kRangesV6; }
};

std::array<Side, 2> sides(const ClosedNetwork& network) {
  return {Side{network.own_v4, network.range_v4, kLoopbackV4, network.range_v4_bits, 8},
          Side{network.own_v6, network.range_v6, kLoopbackV6, network.range_v6_bits, 128}};
}

// The own address is not of 127.0.0.0/8 because resolvers take a host that has no other for one
// without a network. As the preferred source it makes every answer go to an address that is left
// alone.
Result<void> add_addresses_and_routes(const ClosedNetwork& network) {
  NetlinkMessages messages;
  constexpr uint16_t kMake = NLM_F_CREATE | NLM_F_EXCL;
  for (const Side& side : sides(network)) {
    auto family = static_cast<uint8_t>(side.own.size() == 4 ? AF_INET : AF_INET6);
    ifaddrmsg address = {};
    address.ifa_family = family;
    address.ifa_prefixlen = static_cast<uint8_t>(side.own.size() * 8);
    address.ifa_index = kLoopbackIndex;
    // Or it would be no source for a route until the kernel has looked for another like it.
    address.ifa_flags = IFA_F_NODAD;
    messages.begin(RTM_NEWADDR, kMake, address);
    messages.attribute(IFA_LOCAL, side.own);
    rtmsg route = {};
    route.rtm_family = family;
    route.rtm_table = RT_TABLE_LOCAL;
    route.rtm_type = RTN_LOCAL;
    route.rtm_scope = RT_SCOPE_HOST;
    messages.begin(RTM_NEWROUTE, kMake, route);
    messages.u32(RTA_OIF, kLoopbackIndex);
    messages.attribute(RTA_PREFSRC, side.own);
  }
  messages.acknowledge();
  ATOLL_TRY(Fd socket, open_netlink(NETLINK_ROUTE));
  return messages.send(socket.get());
}

void let_be(NftTable& table, Bytes address, unsigned bits) {
  table.begin_rule();
  table.is_destination(address, bits);
  table.verdict(Verdict::kAccept);
  table.end_rule();
}

void write_departures(NftTable& table, const ClosedNetwork& network) {
  table.chain("departures", Hook::kDeparture, 0, Verdict::kDrop);
  for (const Side& side : sides(network)) {
    let_be(table, side.loopback, side.loopback_bits);
    let_be(table, side.own, side.all_bits());
    table.begin_rule();
    table.is_protocol(IPPROTO_TCP);
    table.is_destination(side.range, side.range_bits);
    table.verdict(Verdict::kAccept);
    table.end_rule();
    table.begin_rule();
    table.is_protocol(IPPROTO_TCP);
    table.is_destination_in(side.opened(), side.family());
    table.verdict(Verdict::kAccept);
    table.end_rule();
  }
  for (uint8_t protocol : {IPPROTO_TCP, IPPROTO_UDP}) {
    table.begin_rule();
    table.is_protocol(protocol);
    table.is_destination_port(network.dns_port);
    table.verdict(Verdict::kAccept);
    table.end_rule();
  }
  table.begin_rule();
  table.is_protocol(IPPROTO_TCP);
  table.count_and_log(kLogGroup, kLoggedBytes);
  table.reset_connection();
  table.end_rule();
  table.begin_rule();
  table.count_and_log(kLogGroup, kLoggedBytes);
  table.say_unreachable();
  table.end_rule();
}

// A program's own connection that happens to end there is left alone: its socket is not
// transparent, which makes the kernel pass over the rule.
void write_proxy_arrivals(NftTable& table, const Side& side, const ClosedNetwork& network) {
  table.begin_rule();
  table.is_protocol(IPPROTO_TCP);
  table.is_destination(side.own, side.all_bits());
  table.is_destination_port(network.proxy_port);
  table.hand_to(side.own, network.connection_port);
  table.verdict(Verdict::kAccept);
  table.end_rule();
}

void write_arrivals(NftTable& table, const ClosedNetwork& network) {
  table.chain("arrivals", Hook::kArrival, kBeforeFilters, Verdict::kAccept);
  for (const Side& side : sides(network)) {
    let_be(table, side.loopback, side.loopback_bits);
    write_proxy_arrivals(table, side, network);
    let_be(table, side.own, side.all_bits());
    for (uint8_t protocol : {IPPROTO_TCP, IPPROTO_UDP}) {
      table.begin_rule();
      table.is_family(side.family());
      table.is_protocol(protocol);
      table.is_destination_port(network.dns_port);
      table.hand_to(side.own, network.dns_port);
      table.verdict(Verdict::kAccept);
      table.end_rule();
    }
    table.begin_rule();
    table.is_protocol(IPPROTO_TCP);
    table.is_destination(side.range, side.range_bits);
    table.hand_to(side.own, network.connection_port);
    table.verdict(Verdict::kAccept);
    table.end_rule();
    table.begin_rule();
    table.is_protocol(IPPROTO_TCP);
    table.is_destination_in(side.opened(), side.family());
    table.hand_to(side.own, network.connection_port);
    table.verdict(Verdict::kAccept);
    table.end_rule();
  }
}

Result<void> switch_on(int socket, int level, int option, const char* name) {
  int on = 1;
  if (setsockopt(socket, level, option, &on, sizeof on) != 0) return Error::system(name);
  return {};
}

Result<Fd> make_socket(Bytes own, int type, uint16_t port) {
  bool is_v4 = own.size() == 4;
  Fd made(socket(is_v4 ? AF_INET : AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) return Error::system("socket");
  int level = is_v4 ? SOL_IP : SOL_IPV6;
  ATOLL_TRY_VOID(switch_on(made.get(), SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR"));
  ATOLL_TRY_VOID(switch_on(made.get(), level, is_v4 ? IP_TRANSPARENT : IPV6_TRANSPARENT,
                           "make a socket transparent"));
  if (type == SOCK_DGRAM)
    ATOLL_TRY_VOID(switch_on(made.get(), level, is_v4 ? IP_PKTINFO : IPV6_RECVPKTINFO,
                             "ask for destinations"));
  sockaddr_in four = {};
  sockaddr_in6 six = {};
  four.sin_family = AF_INET;
  six.sin6_family = AF_INET6;
  four.sin_port = six.sin6_port = htons(port);
  std::memcpy(is_v4 ? static_cast<void*>(&four.sin_addr) : &six.sin6_addr, own.data(), own.size());
  const auto* address =
      is_v4 ? reinterpret_cast<sockaddr*>(&four) : reinterpret_cast<sockaddr*>(&six);
  if (bind(made.get(), address, is_v4 ? sizeof four : sizeof six) != 0)
    return Error::system("bind port " + std::to_string(port));
  if (type == SOCK_STREAM && listen(made.get(), kBacklog) != 0) return Error::system("listen");
  return made;
}

void write_log_command(NetlinkMessages& messages, uint16_t group) {
  nfgenmsg header = {};
  header.nfgen_family = AF_UNSPEC;
  header.version = NFNETLINK_V0;
  header.res_id = htons(group);
  messages.begin(NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG, 0, header);
}

// The kernel numbers the messages, so that it can be seen how many were lost in a flood.
Result<Fd> make_refusals_socket() {
  ATOLL_TRY(Fd made, open_netlink(NETLINK_NETFILTER));
  NetlinkMessages messages;
  write_log_command(messages, kLogGroup);
  messages.u8(NFULA_CFG_CMD, NFULNL_CFG_CMD_BIND);
  write_log_command(messages, kLogGroup);
  nfulnl_msg_config_mode mode = {};
  mode.copy_range = htonl(kLoggedBytes);
  mode.copy_mode = NFULNL_COPY_PACKET;
  messages.attribute(NFULA_CFG_MODE, std::span(reinterpret_cast<const char*>(&mode), sizeof mode));
  write_log_command(messages, kLogGroup);
  messages.be16(NFULA_CFG_FLAGS, NFULNL_CFG_F_SEQ);
  messages.acknowledge();
  ATOLL_TRY_VOID(messages.send(made.get()));
  // More than it is allowed to is not given; then a flood loses details earlier, not the count.
  setsockopt(made.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kRefusalsBufferBytes,
             sizeof kRefusalsBufferBytes);
  return made;
}

}  // namespace

Result<void> close_network(const ClosedNetwork& network) {
  NftTable table(kNetworkTable);
  for (const Side& side : sides(network)) table.range_set(side.opened(), side.family());
  write_departures(table, network);
  write_arrivals(table, network);
  ATOLL_TRY_VOID(table.install());
  ATOLL_TRY_VOID(raise_interface("lo"));
  return add_addresses_and_routes(network);
}

Result<NetworkSockets> make_network_sockets(const ClosedNetwork& network) {
  NetworkSockets sockets;
  size_t at = 0;
  struct Kind {
    int type;
    uint16_t port;
  };
  for (Kind kind : {Kind{SOCK_STREAM, network.connection_port}, Kind{SOCK_DGRAM, network.dns_port},
                    Kind{SOCK_STREAM, network.dns_port}})
    for (const Side& side : sides(network)) {
      ATOLL_TRY(sockets[at], make_socket(side.own, kind.type, kind.port));
      ++at;
    }
  ATOLL_TRY(sockets[at], make_refusals_socket());
  return sockets;
}

}  // namespace atl::linux
