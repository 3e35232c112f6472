// The calls that depend on their arguments: clauses in order, of which the first that holds
// answers.
//
// Only the low 32 bits of an argument are looked at. For the calls here that is all the kernel
// uses: they take ints, and clone drops the high half of its flags.
#pragma once

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
// that for "not there" and go on (Go with MPTCP, libaudit), but not EPERM.
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
    {kAllow, {is(0, AF_NETLINK), is(2, NETLINK_ROUTE)}},
    {fail_with(EPROTONOSUPPORT), {is(0, AF_NETLINK)}},
};

inline constexpr Clause kSocketPairs[] = {{kAllow, {is(0, AF_UNIX)}}};

// Typing into a terminal that one only reads, the console, and line disciplines: setting one loads
// a module of the host's kernel.
inline constexpr Clause kTerminalTricks[] = {{kRefuse, {is(1, TIOCSTI)}},
                                             {kRefuse, {is(1, TIOCLINUX)}},
                                             {kRefuse, {is(1, TIOCCONS)}},
                                             {kRefuse, {is(1, TIOCSETD)}}};

// PR_SET_MM forges what /proc says of a process. PR_SCHED_CORE (62) makes the host leave the
// sibling of its core idle.
inline constexpr Clause kProcessOptions[] = {{kRefuse, {is(0, PR_SET_MM)}}, {kRefuse, {is(0, 62)}}};

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
    {SYS_prctl, kProcessOptions, kAllow},
    {SYS_personality, kPersonalities, kRefuse},
    {SYS_mknod, kNodes, kRefuse},
    {SYS_mknodat, kNodesAt, kRefuse},
};

}  // namespace atl::agent::filter
