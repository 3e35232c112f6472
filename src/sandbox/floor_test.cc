#include "sandbox/floor.h"

#include <gtest/gtest.h>

namespace atl::sandbox {
namespace {

using store::Isolation;
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

TEST(Floor, EachWallIsRunByItsOwnImage) {
  using Kind = isolate::Monitor::Kind;
  EXPECT_FALSE(monitor_of(kAll, Isolation::kJail));
  EXPECT_EQ(monitor_of(kAll, Isolation::kGvisor), (isolate::Monitor{*kAll.sentry, Kind::kSentry}));
  EXPECT_EQ(monitor_of(kAll, Isolation::kMicrovm),
            (isolate::Monitor{*kAll.machine, Kind::kMachine}));
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
  EXPECT_TRUE(check_deed(row_behind("jail"), Deed::kChangeLimits).ok());
  for (const char* wall : {"gvisor", "microvm"})
    EXPECT_EQ(check_deed(row_behind(wall), Deed::kChangeLimits).error().reason(),
              "not_behind_this_wall");
}

TEST(Floor, TheFilesOfAMachineCanBeKeptAndThoseOfASentryNot) {
  for (const char* wall : {"jail", "microvm", "gvisor"}) {
    bool can = wall != std::string_view("gvisor");
    EXPECT_EQ(check_deed(row_behind(wall), Deed::kKeepFiles).ok(), can) << wall;
    store::SandboxRow row = row_behind(wall);
    row.checkpoint = "each";
    EXPECT_EQ(check_wall(row).ok(), can) << wall;
    row = row_behind(wall);
    row.snapshot = SnapshotId::draw();
    EXPECT_EQ(check_wall(row).ok(), can) << wall;
  }
}

}  // namespace
}  // namespace atl::sandbox
