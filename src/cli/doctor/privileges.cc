#include "cli/doctor/privileges.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/doctor/trial.h"
#include "cli/doctor/words.h"
#include "cli/state_directory.h"
#include "linux/capabilities.h"

namespace atl::cli {
namespace {

struct Needed {
  int capability;
  const char* name;
};
// The warden's own, and what it and the supervisor need before they give the rest away.
constexpr Needed kNeeded[] = {
    {CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}, {CAP_SETUID, "CAP_SETUID"},
    {CAP_SETGID, "CAP_SETGID"},       {CAP_CHOWN, "CAP_CHOWN"},
    {CAP_FOWNER, "CAP_FOWNER"},       {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
    {CAP_MKNOD, "CAP_MKNOD"},         {CAP_SETPCAP, "CAP_SETPCAP"},
    {CAP_KILL, "CAP_KILL"},
};
constexpr rlim_t kEnoughFiles = 65'536;

bool holds(uint64_t effective, int capability) { return (effective >> capability & 1) != 0; }

// Every id of the host is mapped onto itself only in the first user namespace.
bool in_first_user_namespace() {
  auto map = read_file("/proc/self/uid_map");
  return map && words_of(*map) == std::vector<std::string_view>{"0", "0", "4294967295"};
}

Finding probe_root(uint64_t effective) {
  Finding finding = {.name = "privileges",
                     .kind = FindingClass::kRequired,
                     .state = FindingState::kMissing,
                     .found = "root of the host, with what Atoll needs",
                     .remedy = "run Atoll directly on the host, as root with all its capabilities"};
  std::string missing = missing_capabilities(effective);
  if (geteuid() != 0) {
    finding.state = FindingState::kUnknown;
    finding.found = fmt::format("not root but user {}", geteuid());
    finding.remedy = kAskAsRoot;
  } else if (!in_first_user_namespace()) {
    finding.found = "root of a user namespace only, not of the host";
  } else if (!missing.empty()) {
    finding.found = "without " + missing;
  } else {
    finding.state = FindingState::kOk;
    finding.remedy = "";
  }
  return finding;
}

Finding probe_sys_resource(uint64_t effective) {
  Finding finding = {.name = "capability.sys_resource",
                     .kind = FindingClass::kExtra,
                     .state = FindingState::kOk,
                     .found = "there",
                     .remedy = ""};
  if (holds(effective, CAP_SYS_RESOURCE)) return finding;
  finding.state = geteuid() == 0 ? FindingState::kMissing : FindingState::kUnknown;
  finding.found = "no negative oom_score_adj, no more open files than the hard limit";
  finding.remedy =
      geteuid() == 0 ? "nothing can be done here: whoever started this withheld it" : kAskAsRoot;
  return finding;
}

Finding probe_open_files(uint64_t effective) {
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) files.rlim_max = 0;
  Finding finding = {.name = "limit.open_files",
                     .kind = FindingClass::kAdvice,
                     .state = FindingState::kOk,
                     .found = fmt::format("{}", files.rlim_max),
                     .remedy = ""};
  if (files.rlim_max >= kEnoughFiles) return finding;
  finding.state = FindingState::kMissing;
  finding.found += fmt::format(" (below {}: few sandboxes at once)", kEnoughFiles);
  finding.remedy = holds(effective, CAP_SYS_RESOURCE)
                       ? "ulimit -n 1048576 before atoll up (deploy/atoll.service has it)"
                       : "nothing can be done here without CAP_SYS_RESOURCE";
  return finding;
}

Finding probe_user() {
  Finding finding = {.name = "user",
                     .kind = FindingClass::kAdvice,
                     .state = FindingState::kOk,
                     .found = fmt::format("{} exists", kDaemonUser),
                     .remedy = ""};
  if (find_daemon_identity()) return finding;
  finding.state = FindingState::kMissing;
  finding.found = fmt::format("there is no user {} for atolld", kDaemonUser);
  finding.remedy = fmt::format("useradd --system --no-create-home {}", kDaemonUser);
  return finding;
}

}  // namespace

std::string missing_capabilities(uint64_t effective) {
  std::string names;
  for (const Needed& needed : kNeeded) {
    if (holds(effective, needed.capability)) continue;
    names += (names.empty() ? "" : " ") + std::string(needed.name);
  }
  return names;
}

Findings probe_privileges() {
  auto sets = linux::read_capabilities();
  uint64_t effective = sets ? sets->effective : 0;
  return {probe_root(effective), probe_sys_resource(effective), probe_open_files(effective),
          probe_user()};
}

}  // namespace atl::cli
