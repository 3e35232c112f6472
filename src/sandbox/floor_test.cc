#include "sandbox/floor.h"

#include <gtest/gtest.h>

namespace atl::sandbox {
namespace {

using store::Isolation;
using store::Latency;
using store::Persistence;
using store::TemplateDefaults;

const Offered kJailsOnly;
const Offered kMachinesToo{.machine = Digest::parse(std::string(64, 'a'))};
const Offered kSentriesToo{.sentry = Digest::parse(std::string(64, 'c'))};
const Offered kAll{.sentry = kSentriesToo.sentry, .machine = kMachinesToo.machine};

store::SandboxRow row_behind(const char* isolation) {
  store::SandboxRow row{.id = SandboxId::draw(),
                        .tenant = store::kLocalTenant,
                        .image = *Digest::parse(std::string(64, 'b'))};
  row.isolation = isolation;
  return row;
}

void expect_wall(const Result<Isolation>& chosen, Isolation wanted) {
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(*chosen, wanted);
}

TEST(Floor, TheWeakestWallThatIsEnoughIsChosen) {
  expect_wall(choose_wall(kJailsOnly, {}), Isolation::kJail);
  expect_wall(choose_wall(kMachinesToo, {}), Isolation::kJail);
  for (Isolation asked : {Isolation::kGvisor, Isolation::kMicrovm}) {
    expect_wall(choose_wall(kMachinesToo, {}, asked), Isolation::kMicrovm);
    expect_wall(choose_wall(kMachinesToo, {.isolation = asked}), Isolation::kMicrovm);
    expect_wall(choose_wall(kAll, {}, asked), asked);
  }
  expect_wall(choose_wall(kSentriesToo, {}, Isolation::kGvisor), Isolation::kGvisor);
  EXPECT_FALSE(choose_wall(kSentriesToo, {}, Isolation::kMicrovm).ok());
}

// With everything that could be asked of it left out.
Isolation raised(const Offered& offered, Latency latency, const char* floor = "jail") {
  return strongest_wall(offered, {.latency = latency}, row_behind(floor));
}

TEST(Floor, TheStrongestWallIsTheOneThatTheLatencyClassAllows) {
  for (const Offered* offered : {&kJailsOnly, &kMachinesToo, &kSentriesToo, &kAll})
    EXPECT_EQ(raised(*offered, Latency::kInstant), Isolation::kJail);
  EXPECT_EQ(raised(kAll, Latency::kFast), Isolation::kGvisor);
  EXPECT_EQ(raised(kMachinesToo, Latency::kFast), Isolation::kJail) << "a machine is too slow";
  EXPECT_EQ(raised(kAll, Latency::kAny), Isolation::kMicrovm);
  EXPECT_EQ(raised(kSentriesToo, Latency::kAny), Isolation::kGvisor);
  EXPECT_EQ(raised(kJailsOnly, Latency::kAny), Isolation::kJail);
}

TEST(Floor, TheStrongestWallIsNeverWeakerThanTheFloor) {
  EXPECT_EQ(raised(kAll, Latency::kInstant, "gvisor"), Isolation::kGvisor);
  EXPECT_EQ(raised(kAll, Latency::kAny, "gvisor"), Isolation::kMicrovm);
  EXPECT_EQ(raised(kSentriesToo, Latency::kAny, "microvm"), Isolation::kMicrovm);
}

TEST(Floor, TheStrongestWallIsOneThatDoesWhatIsAskedFor) {
  store::SandboxRow row = row_behind("jail");
  row.persistence = "persistent";
  EXPECT_EQ(strongest_wall(kAll, {.latency = Latency::kAny}, row), Isolation::kJail);
  row = row_behind("jail");
  row.files_only_after_ms = 1000;
  EXPECT_EQ(strongest_wall(kAll, {.latency = Latency::kAny}, row), Isolation::kJail);
}

TEST(Floor, EachWallIsRunByItsOwnImage) {
  using Kind = isolate::Monitor::Kind;
  EXPECT_FALSE(monitor_of(kAll, Isolation::kJail));
  EXPECT_EQ(monitor_of(kAll, Isolation::kGvisor),
            (isolate::Monitor{.image = *kAll.sentry, .kind = Kind::kSentry}));
  EXPECT_EQ(monitor_of(kAll, Isolation::kMicrovm),
            (isolate::Monitor{*kAll.machine, Kind::kMachine}));
  Offered hardware = kAll;
  hardware.virtualization = isolate::Virtualization::kHardware;
  EXPECT_EQ(monitor_of(hardware, Isolation::kGvisor), monitor_of(kAll, Isolation::kGvisor));
  EXPECT_NE(monitor_of(hardware, Isolation::kMicrovm), monitor_of(kAll, Isolation::kMicrovm))
      << "nothing that was made for the one fits the other";
  EXPECT_FALSE(monitor_of(kMachinesToo, Isolation::kGvisor));
}

TEST(Floor, AStrongerWallIsRefusedWhoeverAsks) {
  struct {
    Isolation of_template, asked;
    const char* said;
  } constexpr kCases[] = {
      {Isolation::kJail, Isolation::kGvisor, "the request asks for gvisor"},
      {Isolation::kGvisor, Isolation::kJail, "the template asks for gvisor"},
      {Isolation::kMicrovm, Isolation::kGvisor, "the template asks for microvm"},
      {Isolation::kGvisor, Isolation::kMicrovm, "the request asks for microvm"},
  };
  for (const auto& one : kCases) {
    auto chosen = choose_wall(kJailsOnly, {.isolation = one.of_template}, one.asked);
    ASSERT_FALSE(chosen.ok()) << one.said;
    EXPECT_EQ(chosen.error().reason(), "isolation_unavailable");
    EXPECT_NE(chosen.error().message().find(one.said), std::string::npos)
        << chosen.error().message();
  }
}

TEST(Floor, ARefusalSaysWhatWasFoundOfEachWall) {
  auto refused = choose_wall(kSentriesToo, {}, Isolation::kMicrovm);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message(),
            "the request asks for microvm, and this host has no wall as strong: jail is here, "
            "gvisor is here, microvm needs the image of the template microvm, which is not built");
}

TEST(Floor, FilesMayBeKeptAndMemoryMayNot) {
  EXPECT_TRUE(choose_wall(kJailsOnly, {.persistence = Persistence::kPersistent}).ok());
  auto chosen = choose_wall(kJailsOnly, {.persistence = Persistence::kCheckpoint});
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.error().reason(), "persistence_unavailable");
}

TEST(Floor, WhatAMachineCannotDoIsRefusedByName) {
  EXPECT_TRUE(check_wall(row_behind("jail")).ok());
  EXPECT_TRUE(check_wall(row_behind("microvm")).ok());
  store::SandboxRow row = row_behind("microvm");
  row.network = R"({"allow":["example.com"]})";
  EXPECT_TRUE(check_wall(row).ok());
  row.persistence = "persistent";
  ASSERT_FALSE(check_wall(row).ok());
  EXPECT_EQ(check_wall(row).error().reason(), "not_behind_this_wall");
  EXPECT_EQ(check_wall(row).error().field(), "persistence");
  row = row_behind("microvm");
  row.files_only_after_ms = 1000;
  EXPECT_EQ(check_wall(row).error().field(), "files_only_after_ms");
  row = row_behind("microvm");
  row.files_only_under_pressure = true;
  EXPECT_EQ(check_wall(row).error().field(), "files_only_under_pressure");
  row = row_behind("microvm");
  row.volumes.push_back({.volume = VolumeId::draw(), .name = "data", .path = "/data"});
  EXPECT_EQ(check_wall(row).error().field(), "volumes");
  row.isolation = "jail";
  EXPECT_TRUE(check_wall(row).ok());
  EXPECT_TRUE(check_change(row_behind("jail")).ok());
  for (const char* wall : {"gvisor", "microvm"})
    EXPECT_EQ(check_change(row_behind(wall)).error().reason(), "not_behind_this_wall");
}

TEST(Floor, TheFilesOfASandboxCanBeKeptBehindEveryWall) {
  for (const char* wall : {"jail", "microvm", "gvisor"}) {
    store::SandboxRow row = row_behind(wall);
    row.checkpoint = "each";
    EXPECT_TRUE(check_wall(row).ok()) << wall;
    row = row_behind(wall);
    row.snapshot = SnapshotId::draw();
    EXPECT_TRUE(check_wall(row).ok()) << wall;
  }
}

}  // namespace
}  // namespace atl::sandbox
