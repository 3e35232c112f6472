#include "sandbox/wall_trials.h"

#include <gtest/gtest.h>

#include "base/eventually.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

using isolate::Platform;
using isolate::Virtualization;
using Trial = isolate::FakeDriver::Trial;

// For those who answer.
const auto kLong = std::chrono::duration_cast<std::chrono::seconds>(test_timeout());

class WallTrialsTest : public testing::Test {
 protected:
  void install(char digit, const std::string& name = "microvm") {
    std::string folder = bed_.directory() + "/templates/" + name;
    std::filesystem::create_directories(folder);
    std::string manifest = "name = \"" + name +
                           "\"\nkind = \"monitor\"\n[image]\n"
                           "debian = { suite = \"bookworm\", packages = [\"a-package\"] }\n";
    ASSERT_TRUE(replace_file(folder + "/template.toml", manifest, 0644).ok());
    ASSERT_TRUE(replace_file(folder + "/image", std::string(64, digit) + "\n", 0644).ok());
  }
  void try_newest(std::chrono::seconds time = kLong) {
    WallTrials trial(bed_.sandboxes().services(), templates(),
                     {.machine_time = time, .sentry_time = time});
    bed_.run(tried(trial));
  }
  static Task<bool> tried(WallTrials& trial) {
    co_await trial.try_newest();
    co_return true;
  }
  Templates& templates() { return bed_.sandboxes().templates(); }
  Virtualization offered() { return templates().offered().virtualization; }
  std::string reason() {
    return templates().findings().hardware ? templates().findings().hardware->reason : "none";
  }
  size_t isolates() { return bed_.run(bed_.driver->list())->size(); }
  size_t launched() { return bed_.driver->machines.size(); }

  // Of gVisor.
  bool is_offered() { return templates().offered().sentry.has_value(); }
  Platform way() { return templates().offered().platform; }
  std::string why() {
    return templates().findings().platform ? templates().findings().platform->reason : "-";
  }

  TestBed bed_;
};

TEST_F(WallTrialsTest, OneThatBootsGivesItToAllThatFollow) {
  install('c');
  EXPECT_EQ(offered(), Virtualization::kEmulated) << "until it is known";
  try_newest();
  EXPECT_EQ(offered(), Virtualization::kHardware);
  EXPECT_EQ(reason(), "");
  EXPECT_EQ(isolates(), 0u);
  try_newest();
  EXPECT_EQ(launched(), 1u) << "once is enough";
}

TEST_F(WallTrialsTest, OneThatHangsIsEndedAndMachinesAreEmulated) {
  install('c');
  bed_.driver->hardware = Trial::kHangs;
  auto begin = std::chrono::steady_clock::now();
  try_newest(std::chrono::seconds(1));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  EXPECT_EQ(offered(), Virtualization::kEmulated);
  EXPECT_EQ(reason(), "a machine with KVM did not answer within 1 s");
  EXPECT_EQ(isolates(), 0u) << "nothing is left of it";
}

TEST_F(WallTrialsTest, OneThatEndsSaysSo) {
  install('c');
  bed_.driver->hardware = Trial::kEnds;
  try_newest();
  EXPECT_EQ(offered(), Virtualization::kEmulated);
  EXPECT_EQ(reason(), "a machine with KVM ended before it answered");
  EXPECT_EQ(isolates(), 0u);
}

TEST_F(WallTrialsTest, AHostWithoutTheDeviceIsNotTried) {
  install('c');
  bed_.driver->next_launch_error = Error(Code::kUnsupported, "launch: this host cannot enforce it")
                                       .with_reason("hardware_virtualization_unavailable");
  try_newest();
  EXPECT_EQ(offered(), Virtualization::kEmulated);
  EXPECT_EQ(reason(), "this host has no /dev/kvm");
  EXPECT_EQ(launched(), 0u);
}

TEST_F(WallTrialsTest, NoTimeMeansThatItIsNotUsed) {
  install('c');
  try_newest(std::chrono::seconds(0));
  EXPECT_EQ(offered(), Virtualization::kEmulated);
  EXPECT_EQ(reason(), "KVM is switched off");
  EXPECT_EQ(launched(), 0u);
}

TEST_F(WallTrialsTest, AHostThatCouldNotLaunchIsTriedAgain) {
  install('c');
  bed_.driver->next_launch_error = Error(Code::kExhausted, "the host is full");
  WallTrials trial(bed_.sandboxes().services(), templates(), {.machine_time = kLong});
  bed_.run(tried(trial));
  EXPECT_FALSE(templates().findings().hardware) << "that says nothing about the processor";
  bed_.run(tried(trial));
  EXPECT_FALSE(templates().findings().hardware) << "not at once";
  bed_.clock.advance(std::chrono::minutes(2));
  bed_.run(tried(trial));
  EXPECT_EQ(offered(), Virtualization::kHardware);
}

TEST_F(WallTrialsTest, AnotherImageIsTriedAnew) {
  try_newest();
  EXPECT_EQ(launched(), 0u) << "there is nothing to try";
  install('c');
  try_newest();
  install('d');
  EXPECT_EQ(offered(), Virtualization::kEmulated) << "this one was not tried";
  bed_.driver->hardware = Trial::kEnds;
  try_newest();
  EXPECT_EQ(offered(), Virtualization::kEmulated);
  EXPECT_EQ(launched(), 2u);
}

TEST_F(WallTrialsTest, GvisorIsTriedOnceAndIsBySystrapWhereThatRuns) {
  install('e', "gvisor");
  EXPECT_TRUE(is_offered()) << "until it is known";
  try_newest();
  EXPECT_TRUE(is_offered());
  EXPECT_EQ(way(), Platform::kSystrap);
  EXPECT_EQ(why(), "");
  EXPECT_EQ(isolates(), 0u);
  try_newest();
  EXPECT_EQ(launched(), 1u) << "once is enough";
}

TEST_F(WallTrialsTest, GvisorIsByPtraceWhereSystrapDoesNotRun) {
  install('e', "gvisor");
  bed_.driver->systrap = Trial::kEnds;
  try_newest();
  EXPECT_TRUE(is_offered());
  EXPECT_EQ(way(), Platform::kPtrace);
  EXPECT_EQ(why(), "a sentry by systrap ended before it answered");
  EXPECT_EQ(isolates(), 0u);
}

TEST_F(WallTrialsTest, GvisorThatDoesNotRunIsNotOfferedAndARefusalSaysWhy) {
  install('e', "gvisor");
  bed_.driver->systrap = Trial::kHangs;
  bed_.driver->ptrace = Trial::kEnds;
  try_newest(std::chrono::seconds(1));
  EXPECT_FALSE(is_offered());
  store::TemplateDefaults defaults;
  auto chosen = choose_wall(templates().offered(), defaults, store::Isolation::kGvisor);
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.error().reason(), "isolation_unavailable");
  EXPECT_NE(chosen.error().message().find(
                "gvisor was tried and does not run: a sentry by systrap did not answer within 1 s; "
                "a sentry by ptrace ended before it answered"),
            std::string::npos)
      << chosen.error().message();
  EXPECT_EQ(isolates(), 0u);
  install('f', "gvisor");
  EXPECT_TRUE(is_offered()) << "another image was not tried";
}

TEST_F(WallTrialsTest, GvisorThatDidNotRunIsTriedAgainAfterAWhile) {
  install('e', "gvisor");
  bed_.driver->systrap = bed_.driver->ptrace = Trial::kEnds;
  WallTrials trial(bed_.sandboxes().services(), templates(), {kLong, kLong});
  bed_.run(tried(trial));
  bed_.driver->systrap = Trial::kWorks;
  bed_.run(tried(trial));
  EXPECT_FALSE(is_offered()) << "not at once";
  bed_.clock.advance(std::chrono::minutes(10));
  bed_.run(tried(trial));
  EXPECT_TRUE(is_offered());
  EXPECT_EQ(way(), Platform::kSystrap);
}

TEST_F(WallTrialsTest, ANewImageOfGvisorThatCannotBeLaunchedIsNotTriedAgainAtOnce) {
  install('e', "gvisor");
  WallTrials trial(bed_.sandboxes().services(), templates(), {kLong, kLong});
  bed_.run(tried(trial));
  install('f', "gvisor");
  bed_.driver->next_launch_error = Error(Code::kExhausted, "the host is full");
  bed_.run(tried(trial));
  bed_.run(tried(trial));
  EXPECT_EQ(launched(), 1u);
  bed_.clock.advance(std::chrono::minutes(2));
  bed_.run(tried(trial));
  EXPECT_EQ(launched(), 2u);
}

TEST_F(WallTrialsTest, GvisorThatEndsBeforeItIsLaunchedIsTriedByPtrace) {
  install('e', "gvisor");
  bed_.driver->next_launch_error = Error(Code::kUnavailable, "no").with_reason("isolate_failed");
  try_newest();
  EXPECT_EQ(way(), Platform::kPtrace);
  EXPECT_EQ(why(), "no");
}

TEST_F(WallTrialsTest, GvisorThatMayOnlyTraceDoesSoBeforeItWasTriedToo) {
  install('e', "gvisor");
  WallTrials trial(bed_.sandboxes().services(), templates(),
                   {.machine_time = kLong, .platforms = {Platform::kPtrace}});
  EXPECT_EQ(way(), Platform::kPtrace);
  bed_.run(tried(trial));
  EXPECT_EQ(way(), Platform::kPtrace);
  EXPECT_EQ(why(), "systrap is switched off");
}

TEST_F(WallTrialsTest, GvisorThatCouldNotBeLaunchedIsTriedAgain) {
  install('e', "gvisor");
  bed_.driver->next_launch_error = Error(Code::kExhausted, "the host is full");
  WallTrials trial(bed_.sandboxes().services(), templates(), {.machine_time = kLong});
  bed_.run(tried(trial));
  EXPECT_FALSE(templates().findings().platform);
  bed_.clock.advance(std::chrono::minutes(2));
  bed_.run(tried(trial));
  EXPECT_TRUE(templates().findings().platform);
}

}  // namespace
}  // namespace atl::sandbox
