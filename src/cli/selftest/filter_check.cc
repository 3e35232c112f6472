#include "cli/selftest/filter_check.h"

#include <asm/unistd.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <string_view>

namespace atl::cli::selftest {
namespace {

struct Number {
  std::string_view name;
  int number;
};

// Not in the headers of the oldest system that this is built on.
constexpr int kQuotactlFd = 443, kMemfdSecret = 447, kProcessMrelease = 448, kStatmount = 457,
              kListmount = 458, kOpenTreeAttr = 467, kSetMempolicyHomeNode = 450;
constexpr uint32_t kX32Bit = 0x40000000;
constexpr uint64_t kHighBits = 0xdead000000000000;

constexpr Number kForbidden[] = {
    {"ptrace", __NR_ptrace},
    {"process_vm_readv", __NR_process_vm_readv},
    {"process_vm_writev", __NR_process_vm_writev},
    {"pidfd_getfd", __NR_pidfd_getfd},
    {"kcmp", __NR_kcmp},
    {"process_madvise", __NR_process_madvise},
    {"process_mrelease", kProcessMrelease},
    {"bpf", __NR_bpf},
    {"perf_event_open", __NR_perf_event_open},
    {"userfaultfd", __NR_userfaultfd},
    {"io_uring_setup", __NR_io_uring_setup},
    {"io_uring_enter", __NR_io_uring_enter},
    {"io_uring_register", __NR_io_uring_register},
    {"keyctl", __NR_keyctl},
    {"add_key", __NR_add_key},
    {"request_key", __NR_request_key},
    {"mount", __NR_mount},
    {"umount2", __NR_umount2},
    {"pivot_root", __NR_pivot_root},
    {"move_mount", __NR_move_mount},
    {"open_tree", __NR_open_tree},
    {"open_tree_attr", kOpenTreeAttr},
    {"fsopen", __NR_fsopen},
    {"fsconfig", __NR_fsconfig},
    {"fsmount", __NR_fsmount},
    {"fspick", __NR_fspick},
    {"mount_setattr", __NR_mount_setattr},
    {"statmount", kStatmount},
    {"listmount", kListmount},
    {"name_to_handle_at", __NR_name_to_handle_at},
    {"open_by_handle_at", __NR_open_by_handle_at},
    {"init_module", __NR_init_module},
    {"finit_module", __NR_finit_module},
    {"delete_module", __NR_delete_module},
    {"kexec_load", __NR_kexec_load},
    {"kexec_file_load", __NR_kexec_file_load},
    {"reboot", __NR_reboot},
    {"swapon", __NR_swapon},
    {"swapoff", __NR_swapoff},
    {"acct", __NR_acct},
    {"quotactl", __NR_quotactl},
    {"quotactl_fd", kQuotactlFd},
    {"syslog", __NR_syslog},
    {"iopl", __NR_iopl},
    {"ioperm", __NR_ioperm},
    {"modify_ldt", __NR_modify_ldt},
    {"settimeofday", __NR_settimeofday},
    {"clock_settime", __NR_clock_settime},
    {"clock_adjtime", __NR_clock_adjtime},
    {"adjtimex", __NR_adjtimex},
    {"sethostname", __NR_sethostname},
    {"setdomainname", __NR_setdomainname},
    {"fanotify_init", __NR_fanotify_init},
    {"vhangup", __NR_vhangup},
    {"setns", __NR_setns},
    {"clone3", __NR_clone3},
    {"memfd_secret", kMemfdSecret},
    {"io_setup", __NR_io_setup},
    {"io_submit", __NR_io_submit},
    {"mbind", __NR_mbind},
    {"set_mempolicy", __NR_set_mempolicy},
    {"set_mempolicy_home_node", kSetMempolicyHomeNode},
    {"migrate_pages", __NR_migrate_pages},
    {"move_pages", __NR_move_pages},
};

constexpr Number kNeeded[] = {
    {"read", __NR_read},     {"write", __NR_write}, {"openat", __NR_openat},
    {"execve", __NR_execve}, {"mmap", __NR_mmap},   {"futex", __NR_futex},
    {"wait4", __NR_wait4},   {"clone", __NR_clone}, {"exit_group", __NR_exit_group},
};

constexpr Number kNamespaces[] = {{"user", CLONE_NEWUSER},   {"mount", CLONE_NEWNS},
                                  {"pid", CLONE_NEWPID},     {"ipc", CLONE_NEWIPC},
                                  {"network", CLONE_NEWNET}, {"uts", CLONE_NEWUTS},
                                  {"time", CLONE_NEWTIME},   {"cgroup", CLONE_NEWCGROUP}};

// On this machine: the numbers above are its own.
#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

seccomp_data call_of(int number, uint64_t first = 0, uint64_t second = 0) {
  seccomp_data data = {};
  data.nr = number;
  data.arch = kArchitecture;
  data.args[0] = first;
  data.args[1] = second;
  return data;
}

bool is_allowed(uint32_t action) {
  uint32_t kind = action & SECCOMP_RET_ACTION_FULL;
  // An errno of 0 is a call that is not made but is said to have succeeded.
  if (kind == SECCOMP_RET_ERRNO) return (action & SECCOMP_RET_DATA) == 0;
  return kind != SECCOMP_RET_KILL_PROCESS && kind != SECCOMP_RET_KILL_THREAD &&
         kind != SECCOMP_RET_TRAP;
}

class Check {
 public:
  explicit Check(const Evaluate& evaluate) : evaluate_(evaluate) {}

  void must_refuse(const std::string& what, const seccomp_data& data) {
    if (is_allowed(evaluate_(data))) findings_.push_back("the filter allows " + what);
  }
  void must_allow(const std::string& what, const seccomp_data& data) {
    if (evaluate_(data) != SECCOMP_RET_ALLOW) findings_.push_back("the filter refuses " + what);
  }
  std::vector<std::string> findings() && { return std::move(findings_); }

 private:
  const Evaluate& evaluate_;
  std::vector<std::string> findings_;
};

void check_numbers(Check& check) {
  for (const Number& call : kForbidden)
    check.must_refuse(std::string(call.name), call_of(call.number));
  for (const Number& call : kNeeded) {
    std::string name(call.name);
    uint64_t first = call.number == __NR_clone ? SIGCHLD : 0;
    check.must_allow(name, call_of(call.number, first));
    seccomp_data foreign = call_of(call.number, first);
    foreign.arch = AUDIT_ARCH_I386;
    check.must_refuse(name + " of the 32-bit gate", foreign);
    check.must_refuse(name + " of x32", call_of(call.number | static_cast<int>(kX32Bit), first));
  }
  check.must_refuse("the number -1", call_of(-1));
}

void check_namespaces(Check& check) {
  for (const Number& space : kNamespaces) {
    auto flag = static_cast<uint64_t>(space.number);
    std::string name(space.name);
    check.must_refuse("unshare of a " + name + " namespace", call_of(__NR_unshare, flag));
    check.must_refuse("unshare with high bits", call_of(__NR_unshare, flag | kHighBits));
    // In clone() the bit of the time namespace belongs to the number of a signal.
    if (space.number == CLONE_NEWTIME) continue;
    check.must_refuse("clone of a " + name + " namespace", call_of(__NR_clone, flag | SIGCHLD));
    check.must_refuse("clone with high bits", call_of(__NR_clone, flag | SIGCHLD | kHighBits));
  }
}

void check_sockets(Check& check) {
  for (uint64_t family : {AF_UNIX, AF_INET, AF_INET6})
    check.must_allow("family " + std::to_string(family), call_of(__NR_socket, family, SOCK_STREAM));
  for (uint64_t family = 0; family < 64; ++family) {
    if (family == AF_UNIX || family == AF_INET || family == AF_INET6) continue;
    check.must_refuse("family " + std::to_string(family),
                      call_of(__NR_socket, family, SOCK_STREAM));
  }
  for (uint64_t family : {AF_INET, AF_INET6})
    check.must_refuse("raw sockets", call_of(__NR_socket, family, SOCK_RAW));
}

// Both are compiled to code of the kernel, of which there is one budget for the host.
void check_filters(Check& check) {
  check.must_refuse("a filter of calls", call_of(__NR_seccomp, SECCOMP_SET_MODE_FILTER));
  check.must_refuse("a filter of calls by prctl",
                    call_of(__NR_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER));
  seccomp_data attach = call_of(__NR_setsockopt, 3, SOL_SOCKET);
  for (uint64_t option : {SO_ATTACH_FILTER, SO_ATTACH_REUSEPORT_CBPF}) {
    attach.args[2] = option;
    check.must_refuse("a filter of a socket", attach);
  }
}

void check_terminals(Check& check) {
  for (uint64_t request : {TIOCSTI, TIOCLINUX, TIOCCONS}) {
    check.must_refuse("typing into a terminal", call_of(__NR_ioctl, 0, request));
    check.must_refuse("typing into a terminal, high bits",
                      call_of(__NR_ioctl, 0, request | kHighBits));
  }
}

}  // namespace

std::vector<std::string> check_filter(const Evaluate& evaluate) {
  Check check(evaluate);
  check_numbers(check);
  check_namespaces(check);
  check_sockets(check);
  check_filters(check);
  check_terminals(check);
  return std::move(check).findings();
}

}  // namespace atl::cli::selftest
