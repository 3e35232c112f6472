#include <set>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "api/test_server.h"

namespace atl::api {
namespace {

namespace json = boost::json;
using http::Method;

constexpr const char* kPath = "/v1/sandboxes";

json::object body_of(const http::Response& response) {
  json::error_code error;
  json::value value = json::parse(response.body, error);
  EXPECT_FALSE(error) << response.body;
  return value.is_object() ? value.as_object() : json::object();
}

std::string id_of(const http::Response& response) {
  return std::string(body_of(response)["id"].as_string());
}

std::string code_of(const http::Response& response) {
  json::object body = body_of(response);
  return std::string(body["error"].as_object()["code"].as_string());
}

std::string field_of(const http::Response& response) {
  json::object body = body_of(response);
  return std::string(body["error"].as_object()["field"].as_string());
}

http::Response create(TestServer& server, const std::string& more = "") {
  return server.send(Method::kPost, kPath, R"({"template":"python")" + more + "}");
}

TEST(ApiNames, NameStandsWhereverAnIdDoes) {
  TestServer server;
  auto created = create(server, R"(,"name":"build-1")");
  ASSERT_EQ(created.status, 201) << created.body;
  json::object sandbox = body_of(created);
  EXPECT_EQ(sandbox["name"], "build-1");
  EXPECT_EQ(sandbox["generation"], 1);
  EXPECT_EQ(sandbox["on_ttl"], "delete");
  EXPECT_EQ(sandbox["auto_resume"], false);
  EXPECT_EQ(sandbox["files_only_under_pressure"], false);
  EXPECT_EQ(sandbox["persistence"], "ephemeral");
  EXPECT_TRUE(sandbox["network"].as_object()["allow"].as_array().empty());
  std::string path = std::string(kPath) + "/build-1";
  EXPECT_EQ(id_of(server.send(Method::kGet, path)), id_of(created));
  auto ran = server.send(Method::kPost, path + "/execs", R"({"cmd":["echo","hi"],"wait":true})");
  EXPECT_EQ(ran.status, 200) << ran.body;
  EXPECT_EQ(server.send(Method::kDelete, path).status, 204);
  EXPECT_EQ(code_of(server.send(Method::kGet, path)), "sandbox_not_found");
}

TEST(ApiNames, ConflictIsAnErrorOrUsesWhatIsThere) {
  TestServer server;
  auto created = create(server, R"(,"name":"build")");
  auto refused = create(server, R"(,"name":"build")");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(code_of(refused), "name_taken");
  auto used = create(server, R"(,"name":"build","on_name_conflict":"use")");
  EXPECT_EQ(used.status, 200);
  EXPECT_EQ(id_of(used), id_of(created));
}

TEST(ApiNames, BadNamesAreRefused) {
  TestServer server;
  for (std::string name :
       {std::string(), std::string("Build"), std::string("1a"), std::string("a_b"),
        std::string("-a"), std::string("a/b"), std::string(64, 'a'), "s" + std::string(19, 'a')}) {
    auto refused = create(server, ",\"name\":\"" + name + "\"");
    EXPECT_EQ(refused.status, 400) << name;
    EXPECT_EQ(field_of(refused), "name");
  }
  EXPECT_EQ(create(server, ",\"name\":\"" + std::string(63, 'a') + "\"").status, 201);
  EXPECT_EQ(create(server, R"(,"on_name_conflict":"replace")").status, 400);
}

TEST(ApiGeneration, AnotherOneThanExpectedIsRefusedEverywhere) {
  TestServer server;
  std::string path = std::string(kPath) + "/" + id_of(create(server));
  auto ask = [&](const std::string& target, const std::string& value) {
    http::Headers headers{{"Authorization", "Bearer " + server.key}, {"Atoll-Generation", value}};
    return server.send_as(Method::kGet, target, headers);
  };
  for (const std::string& target : {path, path + "/execs", path + "/receipt"}) {
    EXPECT_EQ(ask(target, "1").status, 200) << target;
    EXPECT_EQ(ask(target, "2").status, 409) << target;
    EXPECT_EQ(code_of(ask(target, "2")), "stale_generation");
    for (const char* nonsense : {"", "x", "1x", "-1", "99999999999"})
      EXPECT_EQ(ask(target, nonsense).status, 400) << nonsense;
  }
}

TEST(ApiList, FiltersByStateAndByAllOfTheMetadata) {
  TestServer server;
  create(server, R"(,"metadata":{"team":"a","url":"http://x:1/"})");
  std::string both = id_of(create(server, R"(,"metadata":{"team":"a","stage":"dev"})"));
  create(server);
  auto listed = [&](const std::string& query) {
    auto response = server.send(Method::kGet, kPath + query);
    EXPECT_EQ(response.status, 200) << response.body;
    return body_of(response)["sandboxes"].as_array().size();
  };
  EXPECT_EQ(listed(""), 3u);
  EXPECT_EQ(listed("?state=running"), 3u);
  EXPECT_EQ(listed("?state=failed"), 0u);
  EXPECT_EQ(listed("?metadata=team:a"), 2u);
  EXPECT_EQ(listed("?metadata=team%3Aa&metadata=stage:dev&state=running"), 1u);
  EXPECT_EQ(listed("?metadata=url:http://x:1/"), 1u);
  EXPECT_EQ(listed("?metadata=team:b"), 0u);
  std::string many;
  for (int i = 0; i < 17; ++i) many += "&metadata=team:a";
  for (const std::string& query :
       {std::string("state=gone"), std::string("metadata=team"), std::string("metadata=:a"),
        std::string("state=running&state=failed"), std::string("cursor=%ff"),
        std::string("metadata=%ff:a"), many})
    EXPECT_EQ(server.send(Method::kGet, std::string(kPath) + "?" + query).status, 400) << query;
}

TEST(ApiList, PagesOfAFilterHoldEachSandboxOnce) {
  TestServer server;
  std::set<std::string> made, seen;
  for (int i = 0; i < 5; ++i) {
    made.insert(id_of(create(server, R"(,"metadata":{"team":"a"})")));
    if (i < 3) create(server);
  }
  std::string cursor;
  for (int page = 0; page < 4; ++page) {
    std::string query = "?metadata=team:a&limit=2" + (cursor.empty() ? "" : "&cursor=" + cursor);
    json::object body = body_of(server.send(Method::kGet, kPath + query));
    for (const json::value& one : body["sandboxes"].as_array())
      EXPECT_TRUE(seen.insert(std::string(one.at("id").as_string())).second);
    if (body["next_cursor"].is_null()) break;
    cursor = std::string(body["next_cursor"].as_string());
  }
  EXPECT_EQ(seen, made);
}

// The clock stands still: all is of one millisecond.
TEST(ApiList, WhatIsMadeMeanwhileComesInTheNextPage) {
  TestServer server;
  std::string sandbox = id_of(create(server));
  struct List {
    std::string path, items, made_by, body;
  };
  for (const List& list :
       {List{"/v1/sandboxes", "sandboxes", kPath, R"({"template":"python"})"},
        List{"/v1/snapshots", "snapshots", "/v1/sandboxes/" + sandbox + "/snapshots", "{}"}}) {
    std::vector<std::string> made, seen;
    if (list.items == "sandboxes") made.push_back(sandbox);
    std::string cursor;
    for (int i = 0; i < 8; ++i) {
      if (made.size() == seen.size())
        made.push_back(id_of(server.send(Method::kPost, list.made_by, list.body)));
      json::object page = body_of(server.send(Method::kGet, list.path + "?limit=1" + cursor));
      ASSERT_EQ(page[list.items].as_array().size(), 1u) << list.items << i;
      seen.push_back(std::string(page[list.items].at(0).at("id").as_string()));
      cursor = "&cursor=" + std::string(page["next_cursor"].as_string());
    }
    EXPECT_EQ(seen, made);
  }
}

TEST(ApiChange, ChangesWhatIsNamedAndShowsIt) {
  TestServer server;
  std::string path = std::string(kPath) + "/" + id_of(create(server, R"(,"idle_ttl_ms":60000,
      "metadata":{"a":"1"},"limits":{"disk_bytes_per_second":65536,"cpu_time_ms":5})"));
  auto changed = server.send(Method::kPatch, path, R"({"ttl_ms":900000,"idle_ttl_ms":null,
      "metadata":{"b":"2"},"limits":{"cpu":0.25,"memory_bytes":33554432,"pids":16,
      "disk_bytes":1048576,"disk_bytes_per_second":null,"output_bytes":0,"open_files":16,
      "cpu_time_ms":null}})");
  ASSERT_EQ(changed.status, 200) << changed.body;
  for (json::object sandbox : {body_of(changed), body_of(server.send(Method::kGet, path))}) {
    json::object limits = sandbox["limits"].as_object();
    EXPECT_EQ(sandbox["ttl_ms"], 900000);
    EXPECT_TRUE(sandbox["idle_ttl_ms"].is_null());
    EXPECT_EQ(sandbox["metadata"], json::value({{"b", "2"}}));
    EXPECT_EQ(limits["cpu"], 0.25);
    EXPECT_EQ(limits["memory_bytes"], 33554432);
    EXPECT_EQ(limits["pids"], 16);
    EXPECT_EQ(limits["disk_bytes"], 1048576);
    EXPECT_TRUE(limits["disk_bytes_per_second"].is_null());
    EXPECT_EQ(limits["output_bytes"], 0);
    EXPECT_EQ(limits["open_files"], 16);
    EXPECT_TRUE(limits["cpu_time_ms"].is_null());
  }
  auto same = server.send(Method::kPatch, path, "{}");
  EXPECT_EQ(same.status, 200);
  EXPECT_EQ(body_of(same)["ttl_ms"], 900000);
  auto listed = server.send(Method::kGet, std::string(kPath) + "?metadata=b:2");
  EXPECT_EQ(body_of(listed)["sandboxes"].as_array().size(), 1u);
}

TEST(ApiChange, WhatCannotBeChangedIsNamed) {
  TestServer server;
  std::string path = std::string(kPath) + "/" + id_of(create(server));
  struct Case {
    const char* body;
    const char* field;
    const char* code;
  };
  for (const Case& one :
       {Case{R"({"limits":{"on_oom":"exec"}})", "limits.on_oom", "limit_fixed"},
        Case{R"({"limits":{"open_files":5000}})", "limits.open_files", "limit_fixed"},
        Case{R"({"limits":{"pids":7}})", "limits.pids", "invalid_field"},
        Case{R"({"ttl_ms":null})", "ttl_ms", "invalid_field"},
        Case{R"({"ttl_ms":0})", "ttl_ms", "invalid_field"},
        Case{R"({"metadata":null})", "metadata", "invalid_field"},
        Case{R"({"name":"other"})", "name", "unknown_field"},
        Case{R"({"template":"python"})", "template", "unknown_field"}}) {
    auto refused = server.send(Method::kPatch, path, one.body);
    EXPECT_EQ(refused.status, 400) << one.body;
    EXPECT_EQ(field_of(refused), one.field) << one.body;
    EXPECT_EQ(code_of(refused), one.code) << one.body;
  }
  EXPECT_EQ(server.send(Method::kPatch, std::string(kPath) + "/none", "{}").status, 404);
  server.run_inside([&] {
    server.bed.driver->limit_change_errors.push_back(
        Error(Code::kConflict, "in use").with_reason("memory_in_use"));
  });
  auto in_use = server.send(Method::kPatch, path, R"({"limits":{"memory_bytes":16777216}})");
  EXPECT_EQ(in_use.status, 409);
  EXPECT_EQ(code_of(in_use), "memory_in_use");
  EXPECT_EQ(field_of(in_use), "limits.memory_bytes");
}

}  // namespace
}  // namespace atl::api
