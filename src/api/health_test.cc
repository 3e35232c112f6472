#include "api/health.h"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "api/test_server.h"

namespace atl::api {
namespace {

TEST(Health, IsWellUntilATroubleIsReportedAndAgainWhenItHasGone) {
  FakeClock clock;
  Health health(clock);
  EXPECT_TRUE(health.is_well());
  health.report_well("warden");
  health.report("egress", "it does not answer");
  EXPECT_FALSE(health.is_well());
  health.report_well("egress");
  EXPECT_TRUE(health.is_well());
}

TEST(Health, SinceIsWhenItChangedNotWhenItWasLastLookedAt) {
  FakeClock clock;
  Health health(clock);
  health.report_well("warden");
  clock.advance(std::chrono::seconds(5));
  health.report("warden", "it does not answer");
  WallTime began = clock.wall_now();
  clock.advance(std::chrono::seconds(7));
  health.report("warden", "it cannot be reached");
  ASSERT_EQ(health.checks().size(), 1u);
  EXPECT_EQ(health.checks()[0].since, began);
  EXPECT_EQ(health.checks()[0].trouble, "it cannot be reached");
}

TEST(Health, ReadyzNamesWhichIsUnwellAndSinceWhen) {
  TestServer server;
  server.run_inside([&] {
    server.health.report_well("warden");
    server.health.report("pool", "it is read-only");
  });
  http::Response answer = server.send_as(http::Method::kGet, "/readyz", {});
  EXPECT_EQ(answer.status, 503);
  auto said = boost::json::parse(answer.body).as_object();
  EXPECT_EQ(said["status"], "unwell");
  auto& pool = said["checks"].as_array().at(1).as_object();
  EXPECT_EQ(pool["name"], "pool");
  EXPECT_EQ(pool["status"], "unwell");
  EXPECT_EQ(pool["reason"], "it is read-only");
  EXPECT_TRUE(pool.contains("since"));
  server.run_inside([&] { server.health.report_well("pool"); });
  EXPECT_EQ(server.send_as(http::Method::kGet, "/readyz", {}).status, 200);
  EXPECT_EQ(server.send_as(http::Method::kGet, "/healthz", {}).status, 200);
}

}  // namespace
}  // namespace atl::api
