#include "egress/open_connections.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace atl::egress {
namespace {

using std::chrono::minutes;

class Connection final : public OpenConnection {
 public:
  explicit Connection(SteadyTime used) : used_(used) {}
  bool is_still_allowed() override { return is_allowed; }
  void cut(const std::string& reason) override { ended = reason; }
  void revoke() override { ended = "revoked"; }
  SteadyTime last_used() const override { return used_; }

  bool is_allowed = true;
  std::string ended;

 private:
  SteadyTime used_;
};

constexpr uint64_t kTenant = 1;
const SteadyTime kNow = SteadyTime() + std::chrono::hours(10);

TEST(OpenConnections, WhatIsNotAllowedAnyMoreIsRevoked) {
  Descriptors descriptors(1100);
  OpenConnections open(descriptors);
  Connection stays(kNow), goes(kNow);
  ASSERT_TRUE(open.enter(&stays, kTenant) && open.enter(&goes, kTenant));
  goes.is_allowed = false;
  open.revoke_denied();
  EXPECT_EQ(stays.ended, "");
  EXPECT_EQ(goes.ended, "revoked");
}

TEST(OpenConnections, IdleOnesEndAfterAnHour) {
  Descriptors descriptors(1100);
  OpenConnections open(descriptors);
  Connection fresh(kNow - minutes(59)), idle(kNow - minutes(61));
  ASSERT_TRUE(open.enter(&fresh, kTenant) && open.enter(&idle, kTenant));
  EXPECT_EQ(open.end_idle(kNow, kTenant), 1u);
  EXPECT_EQ(fresh.ended, "");
  EXPECT_EQ(idle.ended, "idle");
}

TEST(OpenConnections, IdleOnesEndAfterAMinuteWhereThereAreMany) {
  Descriptors descriptors(256);
  OpenConnections open(descriptors);
  Connection fresh(kNow - std::chrono::seconds(59));
  ASSERT_TRUE(open.enter(&fresh, kTenant));
  std::vector<std::unique_ptr<Connection>> idle;
  do idle.push_back(std::make_unique<Connection>(kNow - minutes(2)));
  while (open.enter(idle.back().get(), kTenant));
  EXPECT_EQ(open.end_idle(kNow, kTenant), idle.size() - 1);
  EXPECT_EQ(fresh.ended, "");
}

TEST(OpenConnections, ASandboxHasNoMoreThanItsMost) {
  Descriptors descriptors(100'000);
  OpenConnections open(descriptors);
  std::vector<std::unique_ptr<Connection>> all;
  do all.push_back(std::make_unique<Connection>(kNow));
  while (open.enter(all.back().get(), kTenant));
  EXPECT_EQ(all.size() - 1, kMaxConnections);
}

}  // namespace
}  // namespace atl::egress
