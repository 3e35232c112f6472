// The calls that depend on their arguments: clauses in order, of which the first that holds
// answers.
//
// Only the low 32 bits of an argument are looked at. For the calls here that is all the kernel
// uses: they take ints, and clone drops the high half of its flags.
#pragma once

#include <sys/socket.h>

#include <netinet/tcp.h>

#include "agent/filter/policy.h"

namespace atl::agent::filter {

// (argument & mask) == value; always true when the mask is 0.
struct Condition {
  int argument = 0;
  uint32_t mask = 0;
  uint32_t value = 0;
};

struct Clause {
  uint32_t action;
  Condition all[3] = {};
};

struct CheckedCall {
  int number;
  std::span<const Clause> clauses;
  uint32_t otherwise;
};

constexpr Condition is(int argument, uint32_t value) { return {argument, ~0u, value}; }
constexpr Condition has_none_of(int argument, uint32_t bits) { return {argument, bits, 0}; }

// Every namespace flag of clone and unshare. CLONE_NEWTIME lies in the byte that clone takes for
// the signal of the end, but no signal has so high a number.
inline constexpr uint32_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                        CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |
                                        0x80 /* CLONE_NEWTIME */;
inline constexpr Clause kWithoutNamespaces[] = {{kAllow, {has_none_of(0, kNamespaces)}}};

constexpr Condition is_type(uint32_t type) {
  return {1, ~static_cast<uint32_t>(SOCK_CLOEXEC | SOCK_NONBLOCK), type};
}

// The errors are what the kernel itself would say where the kind is not built in: libraries take
// that for "not there" and go on (Go with MPTCP, libaudit), but not EPERM. Netlink is not there,
// not even for routes: the acknowledgements that nobody reads are charged to nobody, and a sandbox
// can have as many sockets as processes times files.
inline constexpr Clause kSocketKinds[] = {
    {kAllow, {is(0, AF_UNIX), is_type(SOCK_STREAM)}},
    {kAllow, {is(0, AF_UNIX), is_type(SOCK_DGRAM)}},
    {kAllow, {is(0, AF_UNIX), is_type(SOCK_SEQPACKET)}},
    {kRefuse, {is(0, AF_UNIX)}},
    {kAllow, {is(0, AF_INET), is_type(SOCK_STREAM), is(2, 0)}},
    {kAllow, {is(0, AF_INET), is_type(SOCK_STREAM), is(2, IPPROTO_TCP)}},
    {kAllow, {is(0, AF_INET), is_type(SOCK_DGRAM), is(2, 0)}},
    {kAllow, {is(0, AF_INET), is_type(SOCK_DGRAM), is(2, IPPROTO_UDP)}},
    {fail_with(EPROTONOSUPPORT), {is(0, AF_INET), is_type(SOCK_STREAM)}},
    {fail_with(EPROTONOSUPPORT), {is(0, AF_INET), is_type(SOCK_DGRAM)}},
    {kRefuse, {is(0, AF_INET)}},
    {kAllow, {is(0, AF_INET6), is_type(SOCK_STREAM), is(2, 0)}},
    {kAllow, {is(0, AF_INET6), is_type(SOCK_STREAM), is(2, IPPROTO_TCP)}},
    {kAllow, {is(0, AF_INET6), is_type(SOCK_DGRAM), is(2, 0)}},
    {kAllow, {is(0, AF_INET6), is_type(SOCK_DGRAM), is(2, IPPROTO_UDP)}},
    {fail_with(EPROTONOSUPPORT), {is(0, AF_INET6), is_type(SOCK_STREAM)}},
    {fail_with(EPROTONOSUPPORT), {is(0, AF_INET6), is_type(SOCK_DGRAM)}},
    {kRefuse, {is(0, AF_INET6)}},
};

inline constexpr Clause kSocketPairs[] = {{kAllow, {is(0, AF_UNIX)}}};

// Typing into a terminal that one only reads, the console, and line disciplines: setting one loads
// a module of the host's kernel.
inline constexpr Clause kTerminalTricks[] = {{kRefuse, {is(1, TIOCSTI)}},
                                             {kRefuse, {is(1, TIOCLINUX)}},
                                             {kRefuse, {is(1, TIOCCONS)}},
                                             {kRefuse, {is(1, TIOCSETD)}}};

// Filters of its own, for calls and for sockets, are compiled to code of the kernel. That is
// charged to nobody, and where the host's one limit for it (net.core.bpf_jit_limit) is reached, no
// program of any sandbox starts, for each start loads a filter. The errors are those of kernels
// without.
inline constexpr Clause kOwnFilters[] = {
    {fail_with(EINVAL), {is(0, SECCOMP_SET_MODE_FILTER)}},
};

// PR_SET_MM forges what /proc says of a process. PR_SCHED_CORE (62) makes the host leave the
// sibling of its core idle.
inline constexpr Clause kMonitorOptions[] = {{kRefuse, {is(0, PR_SET_MM)}}, {kRefuse, {is(0, 62)}}};
inline constexpr Clause kProcessOptions[] = {
    {kRefuse, {is(0, PR_SET_MM)}},
    {kRefuse, {is(0, 62)}},
    {fail_with(EINVAL), {is(0, PR_SET_SECCOMP), is(1, SECCOMP_MODE_FILTER)}}};

// The keys of TCP are what routers use, and charged to nobody, like what waits in the queue of
// errors of a socket: reports, time stamps, notices of copies that were not made. Resolvers ask for
// reports and give up where they cannot have them, so that call is not made and said to be well.
constexpr Condition is_level(uint32_t level) { return is(1, level); }
constexpr Condition is_option(uint32_t option) { return is(2, option); }
inline constexpr uint32_t kNoOption = fail_with(ENOPROTOOPT);
inline constexpr uint32_t kSaidToBeWell = fail_with(0);
// Newer than the system's headers.
inline constexpr uint32_t kTcpAoAddKey = 38, kIpReportsOfTunnels = 26, kIpv6ReportsOfTunnels = 31;
inline constexpr Clause kSocketOptions[] = {
    {kNoOption, {is_level(SOL_SOCKET), is_option(SO_ATTACH_FILTER)}},
    {kNoOption, {is_level(SOL_SOCKET), is_option(SO_ATTACH_REUSEPORT_CBPF)}},
    {kNoOption, {is_level(SOL_SOCKET), is_option(SO_TIMESTAMPING_OLD)}},
    {kNoOption, {is_level(SOL_SOCKET), is_option(SO_TIMESTAMPING_NEW)}},
    {kNoOption, {is_level(SOL_SOCKET), is_option(SO_ZEROCOPY)}},
    {kNoOption, {is_level(IPPROTO_TCP), is_option(TCP_MD5SIG)}},
    {kNoOption, {is_level(IPPROTO_TCP), is_option(TCP_MD5SIG_EXT)}},
    {kNoOption, {is_level(IPPROTO_TCP), is_option(kTcpAoAddKey)}},
    {kSaidToBeWell, {is_level(IPPROTO_IP), is_option(IP_RECVERR)}},
    {kSaidToBeWell, {is_level(IPPROTO_IPV6), is_option(IPV6_RECVERR)}},
    {kNoOption, {is_level(IPPROTO_IP), is_option(kIpReportsOfTunnels)}},
    {kNoOption, {is_level(IPPROTO_IPV6), is_option(kIpv6ReportsOfTunnels)}},
};

// The filter cannot see the name of an attribute. An access list of a file in memory is charged to
// nobody and may have 64 KiB, so no value has more than 1,024 bytes.
inline constexpr uint32_t kMaxAttributeValue = 1024;
inline constexpr Clause kAttributeSizes[] = {
    {kAllow, {has_none_of(3, ~(kMaxAttributeValue - 1))}},
    {kAllow, {is(3, kMaxAttributeValue)}},
};

// Not READ_IMPLIES_EXEC nor the emulations of other systems. The last one only asks.
inline constexpr Clause kPersonalities[] = {
    {kAllow, {is(0, PER_LINUX)}},         {kAllow, {is(0, PER_LINUX32)}},
    {kAllow, {is(0, UNAME26)}},           {kAllow, {is(0, uint32_t{UNAME26} | PER_LINUX32)}},
    {kAllow, {is(0, ADDR_NO_RANDOMIZE)}}, {kAllow, {is(0, 0xffffffff)}}};

constexpr Condition is_file_type(int argument, uint32_t type) { return {argument, S_IFMT, type}; }
inline constexpr Clause kNodes[] = {{kAllow, {is_file_type(1, S_IFREG)}},
                                    {kAllow, {is_file_type(1, 0)}},
                                    {kAllow, {is_file_type(1, S_IFIFO)}},
                                    {kAllow, {is_file_type(1, S_IFSOCK)}}};
inline constexpr Clause kNodesAt[] = {{kAllow, {is_file_type(2, S_IFREG)}},
                                      {kAllow, {is_file_type(2, 0)}},
                                      {kAllow, {is_file_type(2, S_IFIFO)}},
                                      {kAllow, {is_file_type(2, S_IFSOCK)}}};

inline constexpr CheckedCall kChecked[] = {
    {SYS_clone, kWithoutNamespaces, kRefuse},
    {SYS_unshare, kWithoutNamespaces, kRefuse},
    {SYS_socket, kSocketKinds, fail_with(EAFNOSUPPORT)},
    {SYS_socketpair, kSocketPairs, fail_with(EAFNOSUPPORT)},
    {SYS_ioctl, kTerminalTricks, kAllow},
    {SYS_personality, kPersonalities, kRefuse},
    {SYS_mknod, kNodes, kRefuse},
    {SYS_mknodat, kNodesAt, kRefuse},
    {SYS_setsockopt, kSocketOptions, kAllow},
    {SYS_setxattr, kAttributeSizes, fail_with(E2BIG)},
    {SYS_lsetxattr, kAttributeSizes, fail_with(E2BIG)},
    {SYS_fsetxattr, kAttributeSizes, fail_with(E2BIG)},
};
inline constexpr CheckedCall kCheckedOfPrograms[] = {{SYS_prctl, kProcessOptions, kAllow},
                                                     {SYS_seccomp, kOwnFilters, kAllow}};
inline constexpr CheckedCall kCheckedOfMonitors[] = {{SYS_prctl, kMonitorOptions, kAllow}};

}  // namespace atl::agent::filter
