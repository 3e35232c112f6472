#include "linux/caught_connections.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <iterator>
#include <netinet/in.h>

#include "base/file.h"
#include "linux/netlink_messages.h"

namespace atl::linux {
namespace {

constexpr uint32_t kLoopbackIndex = 1;  // in every network
constexpr int kLoopbackNetwork = 127;
constexpr int kPass = 1;  // SK_PASS
constexpr int kKeyOffset = -4;

long bpf(int command, bpf_attr& attributes) {
  return syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

uint64_t pointer_to(const void* address) { return reinterpret_cast<uint64_t>(address); }

bpf_insn instruction(unsigned code, unsigned target, unsigned source, int offset, int value) {
  bpf_insn made = {};
  made.code = static_cast<uint8_t>(code);
  made.dst_reg = target & 0xf;
  made.src_reg = source & 0xf;
  made.off = static_cast<int16_t>(offset);
  made.imm = value;
  return made;
}

bpf_insn load_field(unsigned target, size_t offset) {
  return instruction(BPF_LDX | BPF_MEM | BPF_W, target, BPF_REG_6, static_cast<int>(offset), 0);
}

bpf_insn copy(unsigned target, unsigned source) {
  return instruction(BPF_ALU64 | BPF_MOV | BPF_X, target, source, 0, 0);
}

bpf_insn set(unsigned target, int value) {
  return instruction(BPF_ALU64 | BPF_MOV | BPF_K, target, 0, 0, value);
}

bpf_insn call(int helper) { return instruction(BPF_JMP | BPF_CALL, 0, 0, 0, helper); }

// A map of one socket.
Result<Fd> hold_socket(int listener) {
  bpf_attr attributes = {};
  attributes.map_type = BPF_MAP_TYPE_SOCKMAP;
  attributes.key_size = sizeof(uint32_t);
  attributes.value_size = sizeof(uint64_t);
  attributes.max_entries = 1;
  Fd map(static_cast<int>(bpf(BPF_MAP_CREATE, attributes)));
  if (!map) return Error::system("make a map of sockets");
  uint32_t key = 0;
  auto value = static_cast<uint64_t>(listener);
  attributes = {};
  attributes.map_fd = static_cast<uint32_t>(map.get());
  attributes.key = pointer_to(&key);
  attributes.value = pointer_to(&value);
  if (bpf(BPF_MAP_UPDATE_ELEM, attributes) != 0) return Error::system("put a socket into its map");
  return map;
}

Result<Fd> load_program(int map, int own) {
  constexpr unsigned kUnequal = BPF_JMP | BPF_JNE | BPF_K, kEqual = BPF_JMP | BPF_JEQ | BPF_K;
  constexpr int kPassed = 23;  // where it ends, and the kernel looks for a socket as ever
  auto to_end = [](int at) { return kPassed - at - 1; };
  const bpf_insn program[] = {
      /* 0 */ copy(BPF_REG_6, BPF_REG_1),
      /* 1 */ load_field(BPF_REG_2, offsetof(bpf_sk_lookup, protocol)),
      /* 2 */ instruction(kUnequal, BPF_REG_2, 0, to_end(2), IPPROTO_TCP),
      /* 3 */ load_field(BPF_REG_2, offsetof(bpf_sk_lookup, family)),
      /* 4 */ instruction(kUnequal, BPF_REG_2, 0, to_end(4), AF_INET),
      /* 5 */ load_field(BPF_REG_2, offsetof(bpf_sk_lookup, local_ip4)),
      /* 6 */ instruction(kEqual, BPF_REG_2, 0, to_end(6), own),
      /* 7 */ instruction(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_2, 0, 0, 0xff),
      /* 8 */ instruction(kEqual, BPF_REG_2, 0, to_end(8), kLoopbackNetwork),
      /* 9 */ instruction(BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, kKeyOffset, 0),
      /* 10 */ copy(BPF_REG_2, BPF_REG_10),
      // NOLINTNEXTLINE(misc-redundant-expression): BPF_ADD and BPF_K are both 0
      /* 11 */ instruction(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, kKeyOffset),
      /* 12 */ instruction(BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map),
      /* 13 */ instruction(0, 0, 0, 0, 0),
      /* 14 */ call(BPF_FUNC_map_lookup_elem),
      /* 15 */ instruction(kEqual, BPF_REG_0, 0, to_end(15), 0),
      /* 16 */ copy(BPF_REG_7, BPF_REG_0),
      /* 17 */ copy(BPF_REG_2, BPF_REG_0),
      /* 18 */ copy(BPF_REG_1, BPF_REG_6),
      /* 19 */ set(BPF_REG_3, 0),
      /* 20 */ call(BPF_FUNC_sk_assign),
      /* 21 */ copy(BPF_REG_1, BPF_REG_7),
      /* 22 */ call(BPF_FUNC_sk_release),
      /* 23 */ set(BPF_REG_0, kPass),
      /* 24 */ instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)};
  bpf_attr attributes = {};
  attributes.prog_type = BPF_PROG_TYPE_SK_LOOKUP;
  attributes.expected_attach_type = BPF_SK_LOOKUP;
  attributes.insns = pointer_to(program);
  attributes.insn_cnt = static_cast<uint32_t>(std::size(program));
  attributes.license = pointer_to("none");
  Fd loaded(static_cast<int>(bpf(BPF_PROG_LOAD, attributes)));
  if (!loaded) return Error::system("load the program that chooses sockets");
  return loaded;
}

}  // namespace

Result<void> own_all_addresses(const std::array<unsigned char, 4>& own) {
  NetlinkMessages messages;
  constexpr uint16_t kMake = NLM_F_CREATE | NLM_F_EXCL;
  ifaddrmsg address = {};
  address.ifa_family = AF_INET;
  address.ifa_prefixlen = 32;
  address.ifa_index = kLoopbackIndex;
  messages.begin(RTM_NEWADDR, kMake, address);
  messages.attribute(IFA_LOCAL, own);
  rtmsg route = {};
  route.rtm_family = AF_INET;
  route.rtm_table = RT_TABLE_LOCAL;
  route.rtm_type = RTN_LOCAL;
  route.rtm_scope = RT_SCOPE_HOST;
  messages.begin(RTM_NEWROUTE, kMake, route);
  messages.u32(RTA_OIF, kLoopbackIndex);
  messages.attribute(RTA_PREFSRC, own);
  messages.acknowledge();
  ATOLL_TRY(Fd socket, open_netlink(NETLINK_ROUTE));
  return messages.send(socket.get());
}

Result<Fd> catch_connections(const std::array<unsigned char, 4>& own, int listener) {
  int own_number;
  std::memcpy(&own_number, own.data(), own.size());
  ATOLL_TRY(Fd map, hold_socket(listener));
  ATOLL_TRY(Fd program, load_program(map.get(), own_number));
  ATOLL_TRY(Fd network, open_file("/proc/self/ns/net", O_RDONLY));
  bpf_attr attributes = {};
  attributes.link_create.prog_fd = static_cast<uint32_t>(program.get());
  attributes.link_create.target_fd = static_cast<uint32_t>(network.get());
  attributes.link_create.attach_type = BPF_SK_LOOKUP;
  Fd link(static_cast<int>(bpf(BPF_LINK_CREATE, attributes)));
  if (!link) return Error::system("attach the program that chooses sockets");
  return link;
}

}  // namespace atl::linux
