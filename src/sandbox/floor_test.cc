#include "sandbox/floor.h"

#include <gtest/gtest.h>

namespace atl::sandbox {
namespace {

using store::Isolation;
using store::Persistence;
using store::TemplateDefaults;

TEST(Floor, WhatTheHostOffersPasses) {
  EXPECT_TRUE(check_floor({}).ok());
  EXPECT_TRUE(check_floor({}, Isolation::kJail).ok());
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
    auto checked = check_floor({.isolation = one.of_template}, one.asked);
    ASSERT_FALSE(checked.ok()) << one.said;
    EXPECT_EQ(checked.error().reason(), "isolation_unavailable");
    EXPECT_NE(checked.error().message().find(one.said), std::string::npos)
        << checked.error().message();
  }
}

TEST(Floor, SandboxesThatShallOutliveTheirEndAreRefused) {
  for (Persistence kept : {Persistence::kPersistent, Persistence::kCheckpoint}) {
    auto checked = check_floor({.persistence = kept});
    ASSERT_FALSE(checked.ok());
    EXPECT_EQ(checked.error().reason(), "persistence_unavailable");
  }
}

}  // namespace
}  // namespace atl::sandbox
