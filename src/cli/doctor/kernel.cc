#include "cli/doctor/kernel.h"

#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <charconv>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/doctor/trial.h"
#include "cli/doctor/words.h"

namespace atl::cli {
namespace {

Finding probe_version() {
  Finding finding = {.name = "kernel",
                     .kind = FindingClass::kRequired,
                     .state = FindingState::kOk,
                     .found = fmt::format("{} (at least {}.{})", kernel_release(),
                                          kKernelFloor.major, kKernelFloor.minor),
                     .remedy = ""};
  auto version = kernel_version();
  if (version && *version >= kKernelFloor) return finding;
  finding.state = FindingState::kMissing;
  finding.remedy = "apt-get install linux-image-amd64 && reboot (Debian 12 has 6.1)";
  return finding;
}

// Allows everything: only that a filter can be loaded is of interest.
Result<void> load_filter() {
  sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  sock_fprog program = {.len = 1, .filter = &allow};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Error::system("set no_new_privs");
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
    return Error::system("load a system call filter");
  return {};
}

Finding probe_landlock() {
  long abi =
      syscall(SYS_landlock_create_ruleset, nullptr, size_t{0}, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi > 0)
    return {.name = "landlock",
            .kind = FindingClass::kExtra,
            .state = FindingState::kOk,
            .found = fmt::format("ABI {}", abi),
            .remedy = ""};
  return {.name = "landlock",
          .kind = FindingClass::kExtra,
          .state = FindingState::kMissing,
          .found = Error::system("ask for its ABI").message(),
          .remedy = errno == EOPNOTSUPP ? "boot with landlock in the kernel parameter lsm="
                                        : kOtherKernel};
}

Finding probe_user_namespace_limit() {
  Finding finding = {.name = "sysctl.user.max_user_namespaces",
                     .kind = FindingClass::kRequired,
                     .state = FindingState::kOk,
                     .found = "",
                     .remedy = ""};
  auto text = read_file("/proc/sys/user/max_user_namespaces");
  if (!text) {
    finding.state = FindingState::kMissing;
    finding.found = text.error().message();
    finding.remedy = kOtherKernel;
    return finding;
  }
  std::vector<std::string_view> words = words_of(*text);
  finding.found = words.empty() ? "nothing" : std::string(words.front());
  if (!words.empty() && parse_number(words.front()).value_or(0) > 0) return finding;
  finding.state = FindingState::kMissing;
  finding.remedy = "sysctl -w user.max_user_namespaces=65536";
  return finding;
}

Finding probe_ptrace_scope() {
  Finding finding = {.name = "sysctl.kernel.yama.ptrace_scope",
                     .kind = FindingClass::kExtra,
                     .state = FindingState::kOk,
                     .found = "no Yama",
                     .remedy = ""};
  auto text = read_file("/proc/sys/kernel/yama/ptrace_scope");
  if (!text) return finding;
  std::vector<std::string_view> words = words_of(*text);
  finding.found = words.empty() ? "nothing" : std::string(words.front());
  if (finding.found != "3") return finding;
  finding.state = FindingState::kMissing;
  finding.found = "3 forbids to look into a sandbox for its receipt";
  finding.remedy = "set kernel.yama.ptrace_scope below 3 in /etc/sysctl.d and reboot";
  return finding;
}

Finding probe_core_pattern() {
  auto text = read_file("/proc/sys/kernel/core_pattern");
  std::string pattern = text && !text->empty() ? text->substr(0, text->find('\n')) : "unknown";
  bool pipe = pattern.starts_with('|');
  return {.name = "sysctl.kernel.core_pattern",
          .kind = FindingClass::kAdvice,
          .state = FindingState::kOk,
          .found = pipe ? "a pipe; sandboxes never reach it" : pattern,
          .remedy = ""};
}

// A name of a process may have line ends and escape sequences.
Finding probe_exception_trace() {
  auto text = read_file("/proc/sys/debug/exception-trace");
  bool writes = text && !text->starts_with('0');
  return {.name = "sysctl.debug.exception-trace",
          .kind = FindingClass::kAdvice,
          .state = writes ? FindingState::kMissing : FindingState::kOk,
          .found = writes ? "a program that faults writes its name into the kernel's log"
                          : "faults of programs are not logged",
          .remedy = writes ? "sysctl -w debug.exception-trace=0" : ""};
}

}  // namespace

std::optional<KernelVersion> parse_kernel_version(std::string_view release) {
  KernelVersion version;
  const char* end = release.data() + release.size();
  auto major = std::from_chars(release.data(), end, version.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return std::nullopt;
  auto minor = std::from_chars(major.ptr + 1, end, version.minor);
  if (minor.ec != std::errc()) return std::nullopt;
  return version;
}

std::string kernel_release() {
  utsname names = {};
  return uname(&names) == 0 ? names.release : "unknown";
}

std::optional<KernelVersion> kernel_version() { return parse_kernel_version(kernel_release()); }

Findings probe_kernel() {
  Finding seccomp = judge({.name = "seccomp",
                           .kind = FindingClass::kRequired,
                           .found = "a filter loads",
                           .remedy = kOtherKernel},
                          run_trial({}, load_filter));
  return {probe_version(),        seccomp,
          probe_landlock(),       probe_user_namespace_limit(),
          probe_ptrace_scope(),   probe_core_pattern(),
          probe_exception_trace()};
}

}  // namespace atl::cli
