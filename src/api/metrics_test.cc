#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "api/test_server.h"

namespace atl::api {
namespace {

using http::Method;

bool has_line(const std::string& text, const std::string& line) {
  return text.find("\n" + line + "\n") != std::string::npos;
}

TEST(Metrics, TellWhatHappened) {
  TestServer server;
  auto made = server.send(Method::kPost, "/v1/sandboxes", R"({"template": "python"})");
  ASSERT_EQ(made.status, 201);
  std::string id(boost::json::parse(made.body).at("id").as_string());
  ASSERT_EQ(server.send(Method::kPost, "/v1/sandboxes", R"({"template": "none"})").status, 404);
  std::string execs = "/v1/sandboxes/" + id + "/execs";
  std::string nonzero = R"({"cmd": ["exit", "3"], "wait": true})";
  ASSERT_EQ(server.send(Method::kPost, execs, nonzero).status, 200);
  ASSERT_EQ(server.send(Method::kGet, "/no/such/route").status, 404);

  auto answer = server.send(Method::kGet, "/metrics");
  ASSERT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.find("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  const std::string& text = answer.body;
  for (const char* line :
       {"atoll_sandboxes{state=\"running\"} 1", "atoll_sandboxes{state=\"failed\"} 0",
        "atoll_sandbox_create_seconds_count 1", "atoll_sandbox_create_failures_total 1",
        "atoll_execs_running 0", "atoll_execs_total{verdict=\"nonzero\"} 1",
        "atoll_exec_start_seconds_count 1", "atoll_warm_pool_size 0",
        "atoll_promised{resource=\"sandboxes\"} 1", "atoll_budget{resource=\"sandboxes\"} 10",
        "atoll_http_requests_total{route=\"POST /v1/sandboxes\",status=\"201\"} 1",
        "atoll_http_requests_total{route=\"POST /v1/sandboxes\",status=\"404\"} 1",
        "atoll_http_requests_total{route=\"POST /v1/sandboxes/{id}/execs\",status=\"200\"} 1",
        "atoll_http_requests_total{route=\"none\",status=\"404\"} 1",
        "atoll_http_open_connections 1"})
    EXPECT_TRUE(has_line(text, line)) << line << "\n" << text;
  EXPECT_NE(text.find("\nprocess_resident_memory_bytes "), std::string::npos);
  // No id of anybody is a label: that would be a series for ever.
  EXPECT_EQ(text.find(id), std::string::npos);
}

TEST(Metrics, AreForTheTenantThatRunsTheHost) {
  TestServer server;
  EXPECT_EQ(server.send_as(Method::kGet, "/metrics", {}).status, 401);
  auto made = server.send(Method::kPost, "/v1/keys", R"({"tenant": "acme", "name": "ci"})");
  std::string key(boost::json::parse(made.body).at("key").as_string());
  auto refused = server.send_as(Method::kGet, "/metrics", {{"Authorization", "Bearer " + key}});
  EXPECT_EQ(refused.status, 403);
  EXPECT_NE(refused.body.find("operator_only"), std::string::npos);
  made = server.send(Method::kPost, "/v1/keys", R"({"tenant": "local", "name": "scraper"})");
  key = boost::json::parse(made.body).at("key").as_string();
  EXPECT_EQ(server.send_as(Method::kGet, "/metrics", {{"Authorization", "Bearer " + key}}).status,
            200);
}

TEST(HostLimits, NameTheBoundsAndWhatIsPromised) {
  TestServer server;
  ASSERT_EQ(server
                .send(Method::kPost, "/v1/sandboxes",
                      R"({"template": "python", "limits": {"memory_bytes": 33554432}})")
                .status,
            201);
  auto answer = server.send(Method::kGet, "/v1/limits");
  ASSERT_EQ(answer.status, 200);
  auto limits = boost::json::parse(answer.body);
  EXPECT_EQ(limits.at("sandbox").at("pids").at("least"), 8);
  EXPECT_EQ(limits.at("sandbox").at("pids").at("most"), 65536);
  EXPECT_EQ(limits.at("host").at("memory_bytes").at("promised"), 33554432);
  EXPECT_EQ(limits.at("host").at("sandboxes").at("budget"), 10);
  EXPECT_EQ(limits.at("extras"), boost::json::parse(R"(["landlock"])"));
  EXPECT_EQ(server.send_as(Method::kGet, "/v1/limits", {}).status, 401);
}

// A bound that is told is the one that holds.
TEST(HostLimits, WhatLiesBeyondABoundIsRefused) {
  TestServer server;
  auto limits = boost::json::parse(server.send(Method::kGet, "/v1/limits").body);
  for (const auto& entry : limits.at("sandbox").as_object()) {
    std::string name(entry.key().data(), entry.key().size());
    double beyond = entry.value().at("most").to_number<double>() + 1;
    std::string field = "\"" + name + "\": " + std::to_string(beyond);
    if (name != "cpu") field = field.substr(0, field.find('.'));
    bool is_limit = !name.ends_with("ttl_ms");
    std::string body = is_limit ? "\"limits\": {" + field + "}" : field;
    auto refused =
        server.send(Method::kPost, "/v1/sandboxes", R"({"template": "python", )" + body + "}");
    EXPECT_EQ(refused.status, 400) << body;
    EXPECT_NE(refused.body.find(name), std::string::npos) << refused.body;
  }
}

}  // namespace
}  // namespace atl::api
