#include "sandbox/hardware_trial.h"

#include <gtest/gtest.h>

#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

using isolate::Virtualization;
using Hardware = isolate::FakeDriver::Hardware;

class HardwareTrials : public testing::Test {
 protected:
  void install(char digit) {
    std::string folder = bed_.directory() + "/templates/microvm";
    std::filesystem::create_directories(folder);
    std::string manifest =
        "name = \"microvm\"\nkind = \"monitor\"\n[image]\n"
        "debian = { suite = \"bookworm\", packages = [\"a-package\"] }\n";
    ASSERT_TRUE(replace_file(folder + "/template.toml", manifest, 0644).ok());
    ASSERT_TRUE(replace_file(folder + "/image", std::string(64, digit) + "\n", 0644).ok());
  }
  void try_newest(std::chrono::seconds time = std::chrono::seconds(1)) {
    HardwareTrial trial(bed_.sandboxes().services(), templates(), time);
    bed_.run(tried(trial));
  }
  static Task<bool> tried(HardwareTrial& trial) {
    co_await trial.try_newest();
    co_return true;
  }
  Templates& templates() { return bed_.sandboxes().templates(); }
  Virtualization offered() { return templates().offered().virtualization; }
  std::string reason() { return templates().hardware() ? templates().hardware()->reason : "none"; }
  size_t isolates() { return bed_.run(bed_.driver->list())->size(); }
  size_t launched() { return bed_.driver->machines.size(); }

  TestBed bed_;
};

TEST_F(HardwareTrials, OneThatBootsGivesItToAllThatFollow) {
  install('c');
  EXPECT_EQ(offered(), Virtualization::kEmulated) << "until it is known";
  try_newest();
  EXPECT_EQ(offered(), Virtualization::kHardware);
  EXPECT_EQ(reason(), "");
  EXPECT_EQ(isolates(), 0u);
  try_newest();
  EXPECT_EQ(launched(), 1u) << "once is enough";
}

TEST_F(HardwareTrials, OneThatHangsIsEndedAndMachinesAreEmulated) {
  install('c');
  bed_.driver->hardware = Hardware::kHangs;
  auto begin = std::chrono::steady_clock::now();
  try_newest();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
  EXPECT_EQ(offered(), Virtualization::kEmulated);
  EXPECT_EQ(reason(), "a machine with KVM did not answer within 1 s");
  EXPECT_EQ(isolates(), 0u) << "nothing is left of it";
}

TEST_F(HardwareTrials, OneThatEndsSaysSo) {
  install('c');
  bed_.driver->hardware = Hardware::kEnds;
  try_newest(std::chrono::seconds(60));
  EXPECT_EQ(offered(), Virtualization::kEmulated);
  EXPECT_EQ(reason(), "a machine with KVM ended before it answered");
  EXPECT_EQ(isolates(), 0u);
}

TEST_F(HardwareTrials, AHostWithoutTheDeviceIsNotTried) {
  install('c');
  bed_.driver->next_launch_error = Error(Code::kUnsupported, "launch: this host cannot enforce it")
                                       .with_reason("hardware_virtualization_unavailable");
  try_newest();
  EXPECT_EQ(offered(), Virtualization::kEmulated);
  EXPECT_EQ(reason(), "this host has no /dev/kvm");
  EXPECT_EQ(launched(), 0u);
}

TEST_F(HardwareTrials, NoTimeMeansThatItIsNotUsed) {
  install('c');
  try_newest(std::chrono::seconds(0));
  EXPECT_EQ(offered(), Virtualization::kEmulated);
  EXPECT_EQ(reason(), "KVM is switched off");
  EXPECT_EQ(launched(), 0u);
}

TEST_F(HardwareTrials, AHostThatCouldNotLaunchIsTriedAgain) {
  install('c');
  bed_.driver->next_launch_error = Error(Code::kExhausted, "the host is full");
  HardwareTrial trial(bed_.sandboxes().services(), templates(), std::chrono::seconds(1));
  bed_.run(tried(trial));
  EXPECT_FALSE(templates().hardware()) << "that says nothing about the processor";
  bed_.run(tried(trial));
  EXPECT_FALSE(templates().hardware()) << "not at once";
  bed_.clock.advance(std::chrono::minutes(2));
  bed_.run(tried(trial));
  EXPECT_EQ(offered(), Virtualization::kHardware);
}

TEST_F(HardwareTrials, AnotherImageIsTriedAnew) {
  try_newest();
  EXPECT_EQ(launched(), 0u) << "there is nothing to try";
  install('c');
  try_newest();
  install('d');
  EXPECT_EQ(offered(), Virtualization::kEmulated) << "this one was not tried";
  bed_.driver->hardware = Hardware::kEnds;
  try_newest();
  EXPECT_EQ(offered(), Virtualization::kEmulated);
  EXPECT_EQ(launched(), 2u);
}

}  // namespace
}  // namespace atl::sandbox
