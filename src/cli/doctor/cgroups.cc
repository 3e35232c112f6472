#include "cli/doctor/cgroups.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/doctor/trial.h"
#include "cli/doctor/words.h"

namespace atl::cli {
namespace {

using linux::CgroupTree;
using linux::Controller;

constexpr int kKillTimeoutMs = 5000;
constexpr const char* kOnlyV2 =
    "boot with the kernel parameters systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all";

size_t index(Controller controller) { return static_cast<size_t>(controller); }

std::string trial_group(const std::string& hierarchy) {
  return hierarchy + "/atoll-doctor-" + std::to_string(getpid());
}

// Makes a group, works in it and removes it, whatever the work came to.
Result<void> with_group(const std::string& hierarchy,
                        const std::function<Result<void>(int group)>& work) {
  std::string path = trial_group(hierarchy);
  ATOLL_TRY_VOID(make_directory(path, 0755));
  auto group = open_file(path, O_RDONLY | O_DIRECTORY);
  Result<void> result = group ? work(group->get()) : Result<void>(group.error());
  ATOLL_TRY_VOID(linux::remove_group(path));
  return result;
}

Result<void> set_v1_limit(int group, Controller controller) {
  switch (controller) {
    case Controller::kMemory:
      return write_file_at(group, "memory.limit_in_bytes", "67108864");
    case Controller::kCpu:
      return write_file_at(group, "cpu.cfs_quota_us", "100000");
    case Controller::kPids:
      return write_file_at(group, "pids.max", "64");
  }
  return Error(Code::kInvalid, "no such controller");
}

// A controller of the v2 tree could be tried only by handing it down from the root, which would
// change the host.
Finding probe_controller(const CgroupTree& tree, Controller controller) {
  std::string_view word = linux::controller_name(controller);
  std::string name = fmt::format("cgroup.{}", word);
  TrialReading reading = {
      .name = name.c_str(), .kind = FindingClass::kRequired, .found = "in v2", .remedy = ""};
  if (tree.in_v2[index(controller)]) return judge(reading, {});
  const std::string& v1 = tree.v1[index(controller)];
  if (v1.empty()) {
    reading.remedy = fmt::format("boot with the kernel parameter cgroup_enable={}", word);
    return judge(reading, Error(Code::kUnsupported, "no hierarchy has this controller"));
  }
  reading.found = "in v1";
  reading.remedy = fmt::format("let root make groups in {}", v1);
  return judge(reading, with_group(v1, [&](int group) { return set_v1_limit(group, controller); }));
}

// A process is born in the group and everything there is killed at once: how every sandbox ends.
Result<void> kill_a_group(const std::string& v2) {
  std::string path = trial_group(v2);  // named after this process, not the child
  return with_group(v2, [&](int group) -> Result<void> {
    auto killed = run_trial({.cgroup = group}, [&] {
      Result<void> result = linux::kill_group(path, kKillTimeoutMs);
      return result ? Result<void>(Error(Code::kSystem, "cgroup.kill did not kill")) : result;
    });
    // The child kills itself with its group, so it never answers.
    if (!killed && killed.error().system_errno() == ECHILD) return {};
    return killed;
  });
}

Finding probe_kill(const CgroupTree& tree) {
  TrialReading reading = {.name = "cgroup.kill",
                          .kind = FindingClass::kRequired,
                          .found = "works",
                          .remedy = fmt::format("let root make groups in {}", tree.v2)};
  if (!tree.v2.empty()) return judge(reading, kill_a_group(tree.v2));
  reading.remedy =
      "mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified";
  return judge(reading, Error(Code::kUnsupported, "no cgroup v2 tree is mounted"));
}

bool host_has_swap() {
  auto text = read_file("/proc/swaps");
  return !text || std::count(text->begin(), text->end(), '\n') > 1;
}

Finding probe_swap(const CgroupTree& tree) {
  const std::string& v1 = tree.v1[index(Controller::kMemory)];
  TrialReading reading = {.name = "cgroup.swap",
                          .kind = FindingClass::kExtra,
                          .found = "swap counts towards memory",
                          .remedy = "boot with the kernel parameter swapaccount=1, or: swapoff -a"};
  if (!host_has_swap()) {
    reading.found = "no swap on this host";
    return judge(reading, {});
  }
  // In v2 only a group whose parent hands memory down has the file, and kernels of our floor always
  // count.
  if (v1.empty()) return judge(reading, {});
  return judge(reading, with_group(v1, [](int group) -> Result<void> {
                 if (faccessat(group, "memory.memsw.limit_in_bytes", F_OK, 0) == 0) return {};
                 return Error(Code::kUnsupported, "swap is not counted");
               }));
}

}  // namespace

std::string describe_layout(const CgroupTree& tree) {
  std::string v1;
  for (Controller controller : linux::kControllers)
    if (!tree.v1[index(controller)].empty())
      v1 += fmt::format("{}{}", v1.empty() ? "" : " ", linux::controller_name(controller));
  if (tree.v2.empty()) return v1.empty() ? "none" : "v1 only";
  if (v1.empty()) return fmt::format("v2 at {}", tree.v2);
  return fmt::format("mixed: v2 at {}, {} in v1", tree.v2, v1);
}

Finding judge_favordynmods(const CgroupTree& tree, const std::vector<linux::MountInfo>& mounts) {
  Finding finding = {.name = "cgroup.favordynmods",
                     .kind = FindingClass::kAdvice,
                     .state = FindingState::kOk,
                     .found = "",
                     .remedy = ""};
  bool on = std::any_of(mounts.begin(), mounts.end(), [](const linux::MountInfo& mount) {
    return mount.file_system.starts_with("cgroup") &&
           linux::has_option(mount.super_options, "favordynmods");
  });
  if (on || !tree.uses_v1() || tree.v2.empty()) {
    finding.found = on ? "on" : "not needed: sandboxes are born in their v2 group";
    return finding;
  }
  finding.state = FindingState::kMissing;
  finding.found = "off: a start that moves into v1 groups waits 7-14 ms";
  finding.remedy = fmt::format("mount -o remount,favordynmods {}", tree.v2);
  return finding;
}

Finding judge_io_controller(std::string_view v2_controllers) {
  if (has_word(v2_controllers, "io"))
    return {.name = "cgroup.io",
            .kind = FindingClass::kExtra,
            .state = FindingState::kOk,
            .found = "in v2",
            .remedy = ""};
  return {.name = "cgroup.io",
          .kind = FindingClass::kExtra,
          .state = FindingState::kMissing,
          .found = "not in v2: no limit on the rate of disk access",
          .remedy = kOnlyV2};
}

Findings probe_cgroups() {
  auto mounts = linux::read_mountinfo();
  auto tree = linux::read_cgroups();
  TrialReading layout = {.name = "cgroup.layout",
                         .kind = FindingClass::kExtra,
                         .found = "",
                         .remedy = "mount -t proc proc /proc"};
  if (!mounts) return {judge(layout, mounts.error())};
  if (!tree) return {judge(layout, tree.error())};
  std::string described = describe_layout(*tree);
  layout.found = described.c_str();
  Findings findings = {judge(layout, {})};
  for (Controller controller : linux::kControllers)
    findings.push_back(probe_controller(*tree, controller));
  findings.push_back(probe_kill(*tree));
  findings.push_back(probe_swap(*tree));
  auto controllers = read_file(tree->v2 + "/cgroup.controllers");
  findings.push_back(judge_io_controller(controllers ? *controllers : std::string()));
  findings.push_back(judge_favordynmods(*tree, *mounts));
  return findings;
}

}  // namespace atl::cli
