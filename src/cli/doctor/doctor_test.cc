#include "cli/doctor/doctor.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "cli/doctor/report.h"
#include "linux/cgroup_tree.h"
#include "linux/mountinfo.h"

namespace atl::cli {
namespace {

std::vector<std::string> trial_groups() {
  linux::CgroupTree tree = linux::read_cgroups().value();
  std::vector<std::string> hierarchies(tree.v1.begin(), tree.v1.end());
  hierarchies.push_back(tree.v2);
  std::string mine = "atoll-doctor-" + std::to_string(getpid());
  std::vector<std::string> found;
  for (const std::string& hierarchy : hierarchies)
    if (!hierarchy.empty() && std::filesystem::exists(hierarchy + "/" + mine))
      found.push_back(hierarchy);
  return found;
}

TEST(Doctor, FindsThisHostUsableAndLeavesNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, because most trials do";
  size_t mounts = linux::read_mountinfo().value().size();
  Report report(examine_host(CommandLine{}));
  EXPECT_TRUE(report.jail_usable()) << to_text(report);
  EXPECT_EQ(linux::read_mountinfo().value().size(), mounts);
  EXPECT_EQ(trial_groups(), std::vector<std::string>{});
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child was left behind";
}

TEST(Doctor, FindingsHaveNamesOfTheirOwnAndRemediesWhenNotOk) {
  Findings findings = examine_host(CommandLine{});
  std::vector<std::string> names;
  for (const Finding& finding : findings) {
    names.push_back(finding.name);
    EXPECT_EQ(finding.state == FindingState::kOk, finding.remedy.empty()) << finding.name;
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(Doctor, TellsWhatAServerHasFoundAboutGvisor) {
  auto found = [](const boost::json::object& sentries) {
    Finding finding = {"gvisor", FindingClass::kExtra, FindingState::kOk, "runsc", ""};
    add_platform(finding, sentries);
    return finding;
  };
  EXPECT_EQ(found({}).found, "runsc");
  EXPECT_EQ(found({{"platform", nullptr}, {"reason", ""}}).found, "runsc");
  EXPECT_EQ(found({{"platform", "systrap"}, {"reason", ""}}).found, "runsc; by systrap");
  EXPECT_EQ(found({{"platform", "ptrace"}, {"reason", "systrap ended"}}).found,
            "runsc; by ptrace, because systrap ended");
  Finding failed = found({{"platform", nullptr}, {"reason", "both ended"}});
  EXPECT_EQ(failed.found, "runsc; does not run here: both ended");
  EXPECT_EQ(failed.state, FindingState::kMissing);
  EXPECT_FALSE(failed.remedy.empty());
}

TEST(Doctor, TellsWhatAServerHasFoundAboutMachines) {
  EXPECT_EQ(machines_text({{"virtualization", "hardware"}, {"reason", ""}}),
            "KVM has booted a machine, and runs them");
  EXPECT_EQ(
      machines_text({{"virtualization", "emulated"}, {"reason", "this host has no /dev/kvm"}}),
      "machines are emulated: this host has no /dev/kvm");
  for (const boost::json::object& unknown :
       {boost::json::object{}, boost::json::object{{"virtualization", nullptr}, {"reason", ""}}})
    EXPECT_EQ(machines_text(unknown),
              "machines are emulated unless a server finds that KVM boots one");
}

}  // namespace
}  // namespace atl::cli
