// Limits, what was hit of them and what a host cannot enforce, as a client sees them.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include "api/failure.h"
#include "api/test_server.h"

namespace atl::api {
namespace {

namespace json = boost::json;
using http::Method;

json::object body_of(const http::Response& response) {
  json::error_code error;
  json::value value = json::parse(response.body, error);
  EXPECT_FALSE(error) << response.body;
  return value.is_object() ? value.as_object() : json::object();
}

json::object create(TestServer& server, const std::string& body) {
  auto response = server.send(Method::kPost, "/v1/sandboxes", body);
  EXPECT_EQ(response.status, 201) << response.body;
  return body_of(response);
}

std::string execs_of(const json::object& sandbox) {
  return "/v1/sandboxes/" + std::string(sandbox.at("id").as_string()) + "/execs";
}

json::value parsed(std::string_view text) { return json::parse(text); }

TEST(Limits, WhatWasAskedForIsShownEverywhere) {
  TestServer server;
  json::object sandbox = create(server, R"({"template":"python","idle_ttl_ms":60000,
      "ttl_ms":120000,"require":["simple_quotas","landlock"],
      "limits":{"cpu":0.5,"memory_bytes":67108864,"pids":32,"disk_bytes":2097152,
                "output_bytes":4096,"open_files":64,"disk_bytes_per_second":65536,
                "cpu_time_ms":1500,"on_oom":"sandbox"}})");
  EXPECT_EQ(sandbox["limits"], parsed(R"({"cpu":0.5,"memory_bytes":67108864,"pids":32,
      "disk_bytes":2097152,"output_bytes":4096,"open_files":64,"disk_bytes_per_second":65536,
      "cpu_time_ms":1500,"on_oom":"sandbox"})"));
  EXPECT_EQ(sandbox["require"], parsed(R"(["landlock","simple_quotas"])"));
  EXPECT_EQ(sandbox["idle_ttl_ms"], 60000);
  EXPECT_NE(sandbox["ends_at"], sandbox["created_at"]);
  sandbox.erase("timings");
  std::string path = "/v1/sandboxes/" + std::string(sandbox["id"].as_string());
  EXPECT_EQ(body_of(server.send(Method::kGet, path)), sandbox);
  json::object listed = body_of(server.send(Method::kGet, "/v1/sandboxes"));
  EXPECT_EQ(listed["sandboxes"].as_array().at(0), sandbox);
}

TEST(Limits, WhatIsNotLimitedIsNull) {
  TestServer server;
  json::object sandbox = create(server, R"({"template":"python"})");
  json::object limits = sandbox["limits"].as_object();
  EXPECT_TRUE(limits["disk_bytes_per_second"].is_null());
  EXPECT_TRUE(limits["cpu_time_ms"].is_null());
  EXPECT_EQ(limits["open_files"], 1024);
  EXPECT_EQ(limits["on_oom"], "exec");
  EXPECT_TRUE(sandbox["idle_ttl_ms"].is_null());
  EXPECT_EQ(sandbox["require"], json::array());
}

TEST(Limits, EndsAtIsThatOfTheTtlWhileAnExecRuns) {
  TestServer server;
  json::object sandbox =
      create(server, R"({"template":"python","ttl_ms":120000,"idle_ttl_ms":60000})");
  std::string path = "/v1/sandboxes/" + std::string(sandbox["id"].as_string());
  server.send(Method::kPost, execs_of(sandbox), R"({"cmd":["hang"]})");
  json::object busy = body_of(server.send(Method::kGet, path));
  EXPECT_GT(busy["ends_at"].as_string(), sandbox["ends_at"].as_string());
}

TEST(Limits, ExecTakesItsOwnOrThoseOfTheSandbox) {
  TestServer server;
  std::string path = execs_of(create(server, R"({"template":"python","limits":
      {"cpu_time_ms":1500,"output_bytes":4096,"open_files":64}})"));
  auto run = [&](const std::string& body) {
    return body_of(server.send(Method::kPost, path, body));
  };
  json::object theirs = run(R"({"cmd":["limits"],"wait":true})");
  EXPECT_EQ(theirs["stdout"], "1500 4096 64 cut\n");
  json::object own = run(R"({"cmd":["limits"],"wait":true,"on_output_limit":"kill",
      "limits":{"cpu_time_ms":2000,"output_bytes":100,"open_files":16}})");
  EXPECT_EQ(own["stdout"], "2000 100 16 kill\n");
  EXPECT_EQ(own["request"].as_object()["limits"],
            parsed(R"({"cpu_time_ms":2000,"output_bytes":100,"open_files":16})"));
  EXPECT_EQ(own["request"].as_object()["on_output_limit"], "kill");
}

TEST(Limits, HitOnesAreNamedBesideTheVerdict) {
  TestServer server;
  std::string path = execs_of(create(server, R"({"template":"python"})"));
  auto run = [&](const std::string& words) {
    return body_of(server.send(Method::kPost, path, R"({"wait":true,"cmd":)" + words + "}"));
  };
  json::object ok = run(R"(["end","program","exit","0","pids","disk"])");
  EXPECT_EQ(ok["verdict"], "ok");
  EXPECT_EQ(ok["limits_hit"], parsed(R"(["pids","disk"])"));
  json::object none = run(R"(["echo","hi"])");
  EXPECT_EQ(none["limits_hit"], json::array());
  EXPECT_EQ(none["usage"],
            parsed(R"({"wall_ms":1,"user_ms":2,"system_ms":3,"peak_memory_bytes":4096,
                       "read_bytes":5000,"written_bytes":6000})"));
  json::object oom = run(R"(["end","memory","signal","9","memory","sandbox_peak"])");
  EXPECT_EQ(oom["verdict"], "oom");
  EXPECT_EQ(oom["signal"], 9);
  EXPECT_EQ(oom["limits_hit"], parsed(R"(["memory"])"));
  EXPECT_EQ(oom["stdout"], "partial\n");
  EXPECT_EQ(oom["usage"].as_object()["scope"], parsed(R"({"peak_memory_bytes":"sandbox"})"));
  json::object running = body_of(server.send(Method::kPost, path, R"({"cmd":["hang"]})"));
  EXPECT_TRUE(running["limits_hit"].is_null());
  json::array listed = body_of(server.send(Method::kGet, path))["execs"].as_array();
  ASSERT_EQ(listed.size(), 4u);
  EXPECT_EQ(listed[0].as_object()["limits_hit"], ok["limits_hit"]);
  EXPECT_EQ(listed[2].as_object()["usage"], oom["usage"]);
}

TEST(Limits, WhatTheHostCannotEnforceIsRefusedWithItsOwnCodeAndNothingIsLeft) {
  const std::pair<const char*, const char*> kRefusals[] = {
      {"cpu", "limits.cpu"},
      {"memory", "limits.memory_bytes"},
      {"pids", "limits.pids"},
      {"disk", "limits.disk_bytes"},
      {"disk_rate", "limits.disk_bytes_per_second"},
      {"open_files", "limits.open_files"},
      {"landlock", "require"},
      {"time_namespace", "require"},
      {"simple_quotas", "require"},
      {"hardware_virtualization", "require"},
  };
  ASSERT_EQ(std::size(kRefusals), warden::kLastRefusal);
  TestServer server;
  uint16_t number = 0;
  for (const auto& [name, field] : kRefusals) {
    EXPECT_EQ(warden::refusal_name(static_cast<warden::Refusal>(++number)), name);
    std::string reason = std::string(name) + "_unavailable";
    // As the jail driver does, before any request that could see it.
    auto fail = [&server, reason] {
      server.bed.driver->next_launch_error =
          Error(Code::kUnsupported, "launch: refused").with_reason(reason);
    };
    server.run_inside(fail);
    auto response = server.send(Method::kPost, "/v1/sandboxes", R"({"template":"python"})");
    EXPECT_EQ(response.status, 400) << reason;
    json::object error = body_of(response)["error"].as_object();
    EXPECT_EQ(error["code"].as_string(), reason);
    EXPECT_EQ(error["field"], field);
    EXPECT_NE(error["remedy"].as_string().find("atoll doctor"), json::string::npos) << reason;
  }
  EXPECT_TRUE(body_of(server.send(Method::kGet, "/v1/sandboxes"))["sandboxes"].as_array().empty());
}

TEST(Limits, NoRoomOnTheHostsDiskIs507) {
  auto response = failure_response(
      Error(Code::kExhausted, "the host's disk is nearly full").with_reason("disk_full"), "r");
  EXPECT_EQ(response.status, 507);
  EXPECT_EQ(body_of(response)["error"].as_object()["code"], "disk_full");
}

}  // namespace
}  // namespace atl::api
