// The compiled filter, asked number by number. The numbers here were written down apart from the
// policy, on purpose: a slip in one of the two shows.
#include "agent/exec_filter.h"

#include <linux/audit.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "linux/bpf_interpreter.h"

namespace atl::agent {
namespace {

constexpr uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr uint32_t kKill = SECCOMP_RET_KILL_PROCESS;
constexpr uint32_t failed(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }

using Arguments = std::array<uint64_t, 4>;

uint32_t ask_of(std::span<const sock_filter> filter, uint32_t number, Arguments arguments = {},
                uint32_t architecture = AUDIT_ARCH_X86_64) {
  seccomp_data call = {};
  call.nr = static_cast<int>(number);
  call.arch = architecture;
  for (size_t i = 0; i < arguments.size(); ++i) call.args[i] = arguments[i];
  auto action = linux::run_filter_program(filter, call);
  EXPECT_TRUE(action.ok()) << action.error().message();
  return action.ok() ? *action : 0;
}

uint32_t ask(uint32_t number, Arguments arguments = {}, uint32_t architecture = AUDIT_ARCH_X86_64) {
  return ask_of(exec_filter(), number, arguments, architecture);
}

struct Range {
  uint32_t first, last;
};
constexpr Range kAllowedRanges[] = {
    {0, 15},    {17, 40},   {42, 52},   {55, 55},   {57, 100},  {102, 102}, {104, 132},
    {137, 138}, {140, 152}, {158, 158}, {160, 162}, {186, 187}, {191, 204}, {213, 213},
    {216, 226}, {228, 235}, {240, 245}, {247, 247}, {251, 255}, {257, 258}, {260, 271},
    {273, 277}, {280, 297}, {299, 299}, {302, 302}, {306, 307}, {309, 309}, {314, 316},
    {318, 319}, {322, 322}, {324, 332}, {334, 334}, {424, 424}, {434, 434}, {436, 437},
    {439, 439}, {441, 441}, {444, 446}, {449, 449}, {452, 456}, {462, 462}, {464, 466}};
// ioctl, socket, socketpair, setsockopt, clone, mknod, personality, prctl, setxattr, lsetxattr,
// fsetxattr, mknodat, unshare, seccomp
constexpr uint32_t kArgumentsDecide[] = {16,  41,  53,  54,  56,  133, 135,
                                         157, 188, 189, 190, 259, 272, 317};
// io_setup and its kin, mbind and its kin, migrate_pages, move_pages, io_pgetevents, clone3,
// io_uring, set_mempolicy_home_node, setxattrat, file_getattr, file_setattr
constexpr uint32_t kHidden[] = {206, 207, 208, 209, 210, 237, 238, 239, 256, 279,
                                333, 425, 426, 427, 435, 450, 463, 468, 469};
constexpr uint32_t kNewest = 469;

uint32_t expected(uint32_t number) {
  bool hidden = std::find(std::begin(kHidden), std::end(kHidden), number) != std::end(kHidden);
  if (number > kNewest || hidden) return failed(ENOSYS);
  for (const Range& range : kAllowedRanges)
    if (number >= range.first && number <= range.last) return kAllow;
  return failed(EPERM);
}

TEST(ExecFilter, TheKernelsOwnChecksPass) {
  EXPECT_TRUE(linux::check_filter_program(exec_filter()).ok());
  EXPECT_LT(exec_filter().size(), 600u);
}

TEST(ExecFilter, EveryNumberHasTheAnswerWrittenDown) {
  for (uint32_t number = 0; number <= 1024; ++number) {
    if (std::find(std::begin(kArgumentsDecide), std::end(kArgumentsDecide), number) !=
        std::end(kArgumentsDecide))
      continue;
    EXPECT_EQ(ask(number), expected(number)) << number;
    EXPECT_EQ(ask(number, {~0ull, ~0ull, ~0ull}), expected(number)) << number;
  }
}

// One group of attacks after the other.
constexpr int kRefused[] = {SYS_mount,
                            SYS_umount2,
                            SYS_pivot_root,
                            SYS_move_mount,
                            SYS_open_tree,
                            SYS_fsopen,
                            SYS_fsconfig,
                            SYS_fsmount,
                            SYS_fspick,
                            SYS_mount_setattr,
                            457 /* statmount */,
                            458 /* listmount */,
                            467 /* open_tree_attr */,
                            SYS_open_by_handle_at,
                            SYS_name_to_handle_at,
                            SYS_setns,
                            SYS_pidfd_getfd,
                            SYS_ptrace,
                            SYS_process_vm_readv,
                            SYS_process_vm_writev,
                            SYS_kcmp,
                            SYS_process_madvise,
                            SYS_process_mrelease,
                            SYS_bpf,
                            SYS_perf_event_open,
                            SYS_userfaultfd,
                            SYS_add_key,
                            SYS_request_key,
                            SYS_keyctl,
                            SYS_init_module,
                            SYS_finit_module,
                            SYS_delete_module,
                            SYS_kexec_load,
                            SYS_kexec_file_load,
                            SYS_reboot,
                            SYS_swapon,
                            SYS_swapoff,
                            SYS_acct,
                            SYS_quotactl,
                            SYS_quotactl_fd,
                            SYS_syslog,
                            SYS_iopl,
                            SYS_ioperm,
                            SYS_lookup_dcookie,
                            SYS_vhangup,
                            SYS_nfsservctl,
                            SYS_settimeofday,
                            SYS_clock_settime,
                            SYS_clock_adjtime,
                            SYS_adjtimex,
                            SYS_sethostname,
                            SYS_setdomainname,
                            SYS_modify_ldt,
                            SYS_fanotify_init,
                            SYS_uselib,
                            SYS_ustat,
                            SYS_sysfs,
                            SYS__sysctl,
                            SYS_memfd_secret,
                            SYS_vmsplice,
                            451 /* cachestat */,
                            459,
                            460,
                            461 /* lsm_* */,
                            335 /* uretprobe */,
                            336 /* uprobe */};

TEST(ExecFilter, WhatAnEscapeWouldNeedIsRefused) {
  for (int number : kRefused)
    EXPECT_EQ(ask(static_cast<uint32_t>(number)), failed(EPERM)) << number;
}

TEST(ExecFilter, AForeignArchitectureIsKilled) {
  for (uint32_t number : {0u, 1u, 41u, 56u, 435u, 511u}) {
    EXPECT_EQ(ask(number, {}, AUDIT_ARCH_I386), kKill);
    EXPECT_EQ(ask(number, {}, AUDIT_ARCH_AARCH64), kKill);
    EXPECT_EQ(ask(number | 0x40000000), kKill) << "x32 " << number;
  }
  EXPECT_EQ(ask(0xffffffff), kKill);
  EXPECT_EQ(ask(0x80000000), kKill);
  EXPECT_EQ(ask(0x3fffffff), failed(ENOSYS));
}

TEST(ExecFilter, NoNamespaceByCloneOrUnshare) {
  constexpr uint32_t kFlags[] = {0x80,       0x00020000, 0x02000000, 0x04000000,
                                 0x08000000, 0x10000000, 0x20000000, 0x40000000};
  constexpr uint64_t kThread = 0x3d0f00;  // what glibc's pthread_create asks for
  for (uint32_t call : {SYS_clone, SYS_unshare}) {
    for (uint64_t flag : kFlags) {
      EXPECT_EQ(ask(call, {flag, 0, 0}), failed(EPERM)) << call << " " << flag;
      EXPECT_EQ(ask(call, {flag | kThread, 0, 0}), failed(EPERM)) << call << " " << flag;
      EXPECT_EQ(ask(call, {flag | 0xabcd'0000'0000'0000, 0, 0}), failed(EPERM));
    }
    EXPECT_EQ(ask(call, {CLONE_FS | CLONE_FILES, 0, 0}), kAllow);
  }
  EXPECT_EQ(ask(SYS_clone, {kThread, 0, 0}), kAllow);
  EXPECT_EQ(ask(SYS_clone, {0x01200011, 0, 0}), kAllow) << "fork of glibc";
  EXPECT_EQ(ask(SYS_clone, {0x4111, 0, 0}), kAllow) << "posix_spawn of glibc";
}

uint32_t expected_socket(uint32_t family, uint32_t type, uint32_t protocol) {
  if (family == 1) return type == 1 || type == 2 || type == 5 ? kAllow : failed(EPERM);
  if (family != 2 && family != 10) return failed(EAFNOSUPPORT);
  if (type != 1 && type != 2) return failed(EPERM);
  bool known = protocol == 0 || protocol == (type == 1 ? 6u : 17u);
  return known ? kAllow : failed(EPROTONOSUPPORT);
}

TEST(ExecFilter, SocketsOfThreeFamilies) {
  constexpr uint64_t kHigh = 0x1'0000'0000;
  for (uint32_t family = 0; family < 64; ++family) {
    for (uint32_t type = 0; type < 16; ++type) {
      for (uint32_t protocol : {0u, 1u, 6u, 9u, 12u, 17u, 58u, 132u, 136u, 255u, 256u, 262u}) {
        uint32_t wanted = expected_socket(family, type, protocol);
        ASSERT_EQ(ask(SYS_socket, {family, type, protocol}), wanted)
            << family << " " << type << " " << protocol;
        ASSERT_EQ(ask(SYS_socket, {family | kHigh, type | 02004000 | kHigh, protocol | kHigh}),
                  wanted)
            << "with flags and high halves: " << family << " " << type << " " << protocol;
      }
    }
    uint32_t pair = family == 1 ? kAllow : failed(EAFNOSUPPORT);
    EXPECT_EQ(ask(SYS_socketpair, {family, 1, 0}), pair);
    EXPECT_EQ(ask(SYS_socketpair, {family | kHigh, 1, 0}), pair);
  }
  EXPECT_EQ(ask(SYS_socket, {0xffffffff, 1, 0}), failed(EAFNOSUPPORT));
  EXPECT_EQ(ask(SYS_socket, {2, 0x11, 0}), failed(EPERM)) << "an unknown flag of the type";
}

TEST(ExecFilter, TerminalTricksByTheLowHalfOfTheRequest) {
  for (uint64_t request : {0x5412, 0x541c, 0x541d, 0x5423}) {
    EXPECT_EQ(ask(SYS_ioctl, {0, request, 0}), failed(EPERM)) << request;
    EXPECT_EQ(ask(SYS_ioctl, {0, request | 0xffff'ffff'0000'0000, 0}), failed(EPERM)) << request;
  }
  for (uint64_t request : {0x5401, 0x5413, 0x5414, 0x540e, 0x541b, 0x5421, 0x8933})
    EXPECT_EQ(ask(SYS_ioctl, {0, request, 0}), kAllow) << request;
}

TEST(ExecFilter, PersonalityPrctlAndNodes) {
  for (uint64_t value : {0x0, 0x8, 0x20000, 0x20008, 0x40000})
    EXPECT_EQ(ask(SYS_personality, {value, 0, 0}), kAllow) << value;
  EXPECT_EQ(ask(SYS_personality, {0xffffffff, 0, 0}), kAllow);
  EXPECT_EQ(ask(SYS_personality, {~0ull, 0, 0}), kAllow);
  for (uint64_t value : {0x400000, 0x440000, 0x100000, 0x1, 0x6, 0x8000000})
    EXPECT_EQ(ask(SYS_personality, {value, 0, 0}), failed(EPERM)) << value;
  EXPECT_EQ(ask(SYS_prctl, {35, 0, 0}), failed(EPERM)) << "PR_SET_MM";
  EXPECT_EQ(ask(SYS_prctl, {62, 1, 0}), failed(EPERM)) << "PR_SCHED_CORE";
  for (uint64_t option : {1, 3, 4, 15, 22, 23, 36, 38, 47})
    EXPECT_EQ(ask(SYS_prctl, {option, 0, 0}), kAllow) << option;
  for (uint64_t type : {0, S_IFREG, S_IFIFO, S_IFSOCK}) {
    EXPECT_EQ(ask(SYS_mknod, {0, type | 0644, 0}), kAllow) << type;
    EXPECT_EQ(ask(SYS_mknodat, {0, 0, type | 0644}), kAllow) << type;
  }
  for (uint64_t type : {S_IFCHR, S_IFBLK, S_IFDIR, S_IFLNK}) {
    EXPECT_EQ(ask(SYS_mknod, {0, type | 0644, 0}), failed(EPERM)) << type;
    EXPECT_EQ(ask(SYS_mknodat, {0, 0, type | 0644 | 0x7'0000'0000}), failed(EPERM)) << type;
  }
}

TEST(ExecFilter, NoCodeOfItsOwnInTheKernel) {
  EXPECT_EQ(ask(SYS_seccomp, {1, 0, 0}), failed(EINVAL)) << "SECCOMP_SET_MODE_FILTER";
  EXPECT_EQ(ask(SYS_seccomp, {1, 8, 0}), failed(EINVAL)) << "with a listener";
  for (uint64_t operation : {0, 2, 3}) EXPECT_EQ(ask(SYS_seccomp, {operation, 0, 0}), kAllow);
  EXPECT_EQ(ask(SYS_prctl, {PR_SET_SECCOMP, 2, 0}), failed(EINVAL));
  EXPECT_EQ(ask(SYS_prctl, {PR_SET_SECCOMP, 1, 0}), kAllow) << "read, write and exit only";
  EXPECT_EQ(ask(SYS_prctl, {PR_GET_SECCOMP, 2, 0}), kAllow);
  for (uint64_t option : {26, 51})
    EXPECT_EQ(ask(SYS_setsockopt, {3, 1, option}), failed(ENOPROTOOPT)) << option;
}

TEST(ExecFilter, NoQueueOfErrors) {
  for (uint64_t option : {37, 60, 65})
    EXPECT_EQ(ask(SYS_setsockopt, {3, 1, option}), failed(ENOPROTOOPT)) << option;
  EXPECT_EQ(ask(SYS_setsockopt, {3, 0, 11}), failed(0)) << "a resolver gives up without";
  EXPECT_EQ(ask(SYS_setsockopt, {3, 41, 25}), failed(0));
  EXPECT_EQ(ask(SYS_setsockopt, {3, 0, 26}), failed(ENOPROTOOPT));
  EXPECT_EQ(ask(SYS_setsockopt, {3, 41, 31}), failed(ENOPROTOOPT));
}

TEST(ExecFilter, NoKeysOfTcpAndAllThatServersSet) {
  for (uint64_t option : {14, 32, 38})
    EXPECT_EQ(ask(SYS_setsockopt, {3, 6, option}), failed(ENOPROTOOPT)) << option;
  for (uint64_t option : {1, 2, 3, 4, 5, 6, 9, 12, 13, 18, 21})
    EXPECT_EQ(ask(SYS_setsockopt, {3, 6, option}), kAllow) << option;
  for (uint64_t option : {2, 7, 8, 9, 13, 15, 20, 21, 27})
    EXPECT_EQ(ask(SYS_setsockopt, {3, 1, option}), kAllow) << option;
  for (uint64_t option : {1, 2, 8, 10, 14, 32, 33, 35, 51})
    EXPECT_EQ(ask(SYS_setsockopt, {3, 0, option}), kAllow) << "of IP: " << option;
}

TEST(ExecFilter, ValuesOfAttributesAreSmall) {
  for (uint32_t call : {SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr}) {
    for (uint64_t size : {0, 1, 44, 1023, 1024})
      EXPECT_EQ(ask(call, {~0ull, ~0ull, ~0ull, size}), kAllow) << size;
    for (uint64_t size : {1025u, 2048u, 4096u, 65536u, 0xffffffffu})
      EXPECT_EQ(ask(call, {0, 0, 0, size}), failed(E2BIG)) << size;
  }
}

TEST(MachineFilter, DiffersFromThatOfProgramsByItsOwnFilters) {
  for (uint32_t number = 0; number < 600; ++number)
    EXPECT_EQ(ask_of(machine_filter(), number), ask(number)) << number;
  EXPECT_EQ(ask_of(machine_filter(), SYS_seccomp, {1, 0, 0}), kAllow);
  EXPECT_EQ(ask_of(machine_filter(), SYS_prctl, {PR_SET_SECCOMP, 2, 0}), kAllow);
  EXPECT_EQ(ask_of(machine_filter(), SYS_prctl, {35, 0, 0}), failed(EPERM));
  EXPECT_EQ(ask_of(machine_filter(), 1, {}, AUDIT_ARCH_I386), kKill);
}

TEST(SentryFilter, DiffersFromThatOfProgramsByPtraceItsOwnFiltersAndNeverKills) {
  for (uint32_t number = 0; number < 600; ++number) {
    uint32_t wanted = number == SYS_ptrace ? kAllow : ask(number);
    EXPECT_EQ(ask_of(sentry_filter(), number), wanted) << number;
  }
  EXPECT_EQ(ask(101), failed(EPERM));
  EXPECT_EQ(ask_of(sentry_filter(), SYS_seccomp, {1, 8, 0}), kAllow);
  EXPECT_EQ(ask_of(sentry_filter(), SYS_prctl, {PR_SET_SECCOMP, 2, 0}), kAllow);
  EXPECT_EQ(ask_of(sentry_filter(), SYS_prctl, {35, 0, 0}), failed(EPERM));
  EXPECT_EQ(ask_of(sentry_filter(), 1, {}, AUDIT_ARCH_I386), failed(ENOSYS));
  EXPECT_EQ(ask_of(sentry_filter(), 0x40000001), failed(ENOSYS));
  EXPECT_EQ(ask_of(sentry_filter(), SYS_unshare, {CLONE_NEWUSER}), failed(EPERM));
}

}  // namespace
}  // namespace atl::agent
