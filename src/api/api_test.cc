#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "api/base64.h"
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

std::string text_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->as_string()) : "";
}

json::object error_of(const http::Response& response) {
  json::object body = body_of(response);
  json::object error = body["error"].as_object();
  EXPECT_FALSE(text_of(error, "message").empty());
  EXPECT_FALSE(text_of(error, "remedy").empty());
  EXPECT_FALSE(text_of(error, "request_id").empty());
  return error;
}

std::string create_sandbox(TestServer& server) {
  auto response = server.send(Method::kPost, "/v1/sandboxes", R"({"template":"python"})");
  EXPECT_EQ(response.status, 201) << response.body;
  return text_of(body_of(response), "id");
}

TEST(Api, CreateRunDelete) {
  TestServer server;
  std::string path = "/v1/sandboxes/" + create_sandbox(server);
  auto ran = server.send(Method::kPost, path + "/execs", R"({"cmd":["echo","hi"],"wait":true})");
  EXPECT_EQ(ran.status, 200) << ran.body;
  json::object exec = body_of(ran);
  EXPECT_EQ(text_of(exec, "id"), "e1");
  EXPECT_EQ(text_of(exec, "verdict"), "ok");
  EXPECT_EQ(text_of(exec, "stdout"), "hi\n");
  EXPECT_EQ(text_of(exec, "stderr"), "");
  EXPECT_EQ(exec["exit_code"], 0);
  EXPECT_TRUE(exec["signal"].is_null());
  EXPECT_EQ(exec["stdout_bytes"], 3);
  EXPECT_EQ(server.send(Method::kDelete, path).status, 204);
  EXPECT_EQ(server.send(Method::kGet, path).status, 404);
  EXPECT_EQ(server.send(Method::kDelete, path).status, 404);
}

TEST(Api, StandardErrorIsSeparateAndExitCodeIsKept) {
  TestServer server;
  std::string path = "/v1/sandboxes/" + create_sandbox(server) + "/execs";
  auto warned = body_of(server.send(Method::kPost, path, R"({"cmd":["warn","x"],"wait":true})"));
  EXPECT_EQ(text_of(warned, "stderr"), "x\n");
  EXPECT_EQ(text_of(warned, "stdout"), "");
  auto failed = body_of(server.send(Method::kPost, path, R"({"cmd":["exit","7"],"wait":true})"));
  EXPECT_EQ(text_of(failed, "verdict"), "nonzero");
  EXPECT_EQ(failed["exit_code"], 7);
}

TEST(Api, ExecWithoutWaitIsAcceptedThenSignalled) {
  TestServer server;
  std::string path = "/v1/sandboxes/" + create_sandbox(server) + "/execs";
  auto accepted = server.send(Method::kPost, path, R"({"cmd":["hang"]})");
  EXPECT_EQ(accepted.status, 202);
  EXPECT_EQ(text_of(body_of(accepted), "state"), "running");
  auto signalled = server.send(Method::kPost, path + "/e1/signal", R"({"signal":"KILL"})");
  EXPECT_EQ(signalled.status, 204) << signalled.body;
  json::object exec;
  EXPECT_TRUE(eventually([&] {
    exec = body_of(server.send(Method::kGet, path + "/e1"));
    return text_of(exec, "state") == "ended";
  }));
  EXPECT_EQ(text_of(exec, "verdict"), "killed");
  EXPECT_EQ(server.send(Method::kPost, path + "/e1/signal", R"({"signal":"KILL"})").status, 409);
  auto listed = body_of(server.send(Method::kGet, path));
  EXPECT_EQ(listed["execs"].as_array().size(), 1u);
}

TEST(Api, OutputIsReadAsBytesFromAnyOffset) {
  TestServer server;
  std::string path = "/v1/sandboxes/" + create_sandbox(server) + "/execs";
  server.send(Method::kPost, path, R"({"cmd":["spam","200000"],"wait":true})");
  auto all = server.send(Method::kGet, path + "/e1/output?stream=stdout");
  ASSERT_EQ(all.body.size(), 200000u);
  auto rest = server.send(Method::kGet, path + "/e1/output?stream=stdout&offset=199990");
  EXPECT_EQ(rest.body, all.body.substr(199990));
  EXPECT_EQ(server.send(Method::kGet, path + "/e1/output?offset=200000").body, "");
  auto beyond = server.send(Method::kGet, path + "/e1/output?offset=200001");
  EXPECT_EQ(beyond.status, 400);
  EXPECT_EQ(text_of(error_of(beyond), "code"), "offset_beyond_end");
  EXPECT_EQ(server.send(Method::kGet, path + "/e1/output?offset=-1").status, 400);
  EXPECT_EQ(server.send(Method::kGet, path + "/e1/output?stream=both").status, 400);
}

TEST(Api, SandboxesAreListedInPages) {
  TestServer server;
  for (int i = 0; i < 3; ++i) create_sandbox(server);
  auto first = body_of(server.send(Method::kGet, "/v1/sandboxes?limit=2"));
  EXPECT_EQ(first["sandboxes"].as_array().size(), 2u);
  std::string cursor = text_of(first, "next_cursor");
  ASSERT_FALSE(cursor.empty());
  auto second = body_of(server.send(Method::kGet, "/v1/sandboxes?limit=2&cursor=" + cursor));
  EXPECT_EQ(second["sandboxes"].as_array().size(), 1u);
  EXPECT_TRUE(second["next_cursor"].is_null());
  EXPECT_EQ(server.send(Method::kGet, "/v1/sandboxes?limit=0").status, 400);
  EXPECT_EQ(server.send(Method::kGet, "/v1/sandboxes?cursor=x").status, 400);
}

TEST(Api, KeyIsRequiredAndNothingIsToldWithoutIt) {
  TestServer server;
  for (const char* path : {"/v1/sandboxes", "/v1/nothing", "/v1/sandboxes/saaaaaaaaaaaaaaaaaaa"}) {
    auto response = server.send_as(Method::kGet, path, {});
    EXPECT_EQ(response.status, 401) << path;
    EXPECT_EQ(text_of(error_of(response), "code"), "unauthenticated");
  }
  for (const std::string& value :
       {std::string("Bearer "), "Bearer " + server.key + "x", "bearer " + server.key,
        "Basic " + server.key, "Bearer  " + server.key, server.key,
        "Bearer " + std::string(4000, 'a')}) {
    EXPECT_EQ(server.send_as(Method::kGet, "/v1/sandboxes", {{"Authorization", value}}).status, 401)
        << value;
  }
  http::Headers twice{{"Authorization", "Bearer " + server.key}, {"Authorization", "Bearer x"}};
  EXPECT_EQ(server.send_as(Method::kGet, "/v1/sandboxes", twice).status, 401);
}

TEST(Api, HealthNeedsNoKey) {
  TestServer server;
  EXPECT_EQ(server.send_as(Method::kGet, "/healthz", {}).status, 200);
  EXPECT_EQ(server.send_as(Method::kGet, "/readyz", {}).status, 200);
}

TEST(Api, PagesOfOtherSitesAreRefused) {
  TestServer server;
  http::Headers foreign{{"Authorization", "Bearer " + server.key},
                        {"Origin", "https://evil.example"}};
  EXPECT_EQ(server.send_as(Method::kGet, "/v1/sandboxes", foreign).status, 403);
  http::Headers null_origin{{"Authorization", "Bearer " + server.key}, {"Origin", "null"}};
  EXPECT_EQ(server.send_as(Method::kGet, "/v1/sandboxes", null_origin).status, 403);
  http::Headers own{{"Authorization", "Bearer " + server.key}, {"Origin", "http://localhost:4700"}};
  EXPECT_EQ(server.send_as(Method::kGet, "/v1/sandboxes", own).status, 200);
}

TEST(Api, OnlyANumberIsAPortOfOurName) {
  TestServer server;
  for (const char* origin : {"http://127.0.0.1:80.attacker.example", "http://localhost:x@a.example",
                             "http://[::1]:1.example", "http://[::1].example", "null"})
    EXPECT_EQ(server.send_as(Method::kGet, "/healthz", {{"Origin", origin}}).status, 403) << origin;
  for (const char* origin : {"http://127.0.0.1:80", "http://localhost", "http://[::1]:4700"})
    EXPECT_EQ(server.send_as(Method::kGet, "/healthz", {{"Origin", origin}}).status, 200) << origin;
}

TEST(Api, UnknownRouteAndWrongMethod) {
  TestServer server;
  EXPECT_EQ(text_of(error_of(server.send(Method::kGet, "/v2/sandboxes")), "code"), "not_found");
  EXPECT_EQ(server.send(Method::kGet, "/v1/sandboxes/").status, 404);
  EXPECT_EQ(server.send(Method::kGet, "//v1/sandboxes").status, 404);
  auto wrong = server.send(Method::kPut, "/v1/sandboxes", "{}");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers.find("Allow"), "POST, GET");
}

struct BadBody {
  const char* body;
  int status;
  const char* code;
  const char* field;
};

TEST(Api, BadCreatesAreRefusedWithTheFieldNamedAndNothingIsCreated) {
  TestServer server;
  const BadBody kBodies[] = {
      {"", 400, "invalid_json", ""},
      {"[]", 400, "invalid_json", ""},
      {"{\"template\":\"python\"", 400, "invalid_json", ""},
      {"{\"template\":\"python\"} x", 400, "invalid_json", ""},
      {"{\"template\":\"py\xff\"}", 400, "invalid_json", ""},
      {R"({"template":"python","template":"python"})", 400, "invalid_json", "template"},
      {"{}", 400, "missing_field", "template"},
      {R"({"template":7})", 400, "invalid_field", "template"},
      {R"({"template":null})", 400, "missing_field", "template"},
      {R"({"template":"cobol"})", 404, "template_not_found", "template"},
      {R"({"template":"../../etc"})", 404, "template_not_found", "template"},
      {R"({"template":"python","privileged":true})", 400, "unknown_field", "privileged"},
      {R"({"template":"python","tenant_id":2})", 400, "unknown_field", "tenant_id"},
      {R"({"template":"python","limits":{"memory":1}})", 400, "unknown_field", "limits.memory"},
      {R"({"template":"python","limits":7})", 400, "invalid_field", "limits"},
      {R"({"template":"python","limits":{"memory_bytes":0}})", 400, "invalid_field",
       "limits.memory_bytes"},
      {R"({"template":"python","limits":{"memory_bytes":-1}})", 400, "invalid_field",
       "limits.memory_bytes"},
      {R"({"template":"python","limits":{"memory_bytes":9223372036854775808}})", 400,
       "invalid_field", "limits.memory_bytes"},
      {R"({"template":"python","limits":{"memory_bytes":1e9}})", 400, "invalid_field",
       "limits.memory_bytes"},
      {R"({"template":"python","limits":{"memory_bytes":"1G"}})", 400, "invalid_field",
       "limits.memory_bytes"},
      {R"({"template":"python","limits":{"cpu":0}})", 400, "invalid_field", "limits.cpu"},
      {R"({"template":"python","limits":{"cpu":1e308}})", 400, "invalid_field", "limits.cpu"},
      {R"({"template":"python","limits":{"pids":4294967297}})", 400, "invalid_field",
       "limits.pids"},
      {R"({"template":"python","limits":{"open_files":15}})", 400, "invalid_field",
       "limits.open_files"},
      {R"({"template":"python","limits":{"open_files":1048577}})", 400, "invalid_field",
       "limits.open_files"},
      {R"({"template":"python","limits":{"disk_bytes_per_second":65535}})", 400, "invalid_field",
       "limits.disk_bytes_per_second"},
      {R"({"template":"python","limits":{"cpu_time_ms":0}})", 400, "invalid_field",
       "limits.cpu_time_ms"},
      {R"({"template":"python","limits":{"cpu_time_ms":2592000001}})", 400, "invalid_field",
       "limits.cpu_time_ms"},
      {R"({"template":"python","limits":{"on_oom":"host"}})", 400, "invalid_field",
       "limits.on_oom"},
      {R"({"template":"python","require":"landlock"})", 400, "invalid_field", "require"},
      {R"({"template":"python","require":["landlock","magic"]})", 400, "invalid_field", "require"},
      {R"({"template":"python","idle_ttl_ms":999})", 400, "invalid_field", "idle_ttl_ms"},
      {R"({"template":"python","ttl_ms":0})", 400, "invalid_field", "ttl_ms"},
      {R"({"template":"python","isolation":"microvm"})", 400, "isolation_unavailable", "isolation"},
      {R"({"template":"python","env":{"A=B":"x"}})", 400, "invalid_field", "env"},
      {R"({"template":"python","env":{"A":1}})", 400, "invalid_field", "env.A"},
      {R"({"template":"python","env":{"A":"x\u0000y"}})", 400, "invalid_field", "env.A"},
      {R"({"template":"python","metadata":[]})", 400, "invalid_field", "metadata"},
  };
  for (const BadBody& bad : kBodies) {
    http::Headers headers{{"Authorization", "Bearer " + server.key},
                          {"Content-Type", "application/json"}};
    auto response = server.send_as(Method::kPost, "/v1/sandboxes", headers, bad.body);
    EXPECT_EQ(response.status, bad.status) << bad.body;
    json::object error = error_of(response);
    EXPECT_EQ(text_of(error, "code"), bad.code) << bad.body;
    EXPECT_EQ(text_of(error, "field"), bad.field) << bad.body;
  }
  std::string deep = R"({"template":)" + std::string(100, '[') + std::string(100, ']') + "}";
  EXPECT_EQ(server.send(Method::kPost, "/v1/sandboxes", deep).status, 400);
  auto listed = body_of(server.send(Method::kGet, "/v1/sandboxes"));
  EXPECT_TRUE(listed["sandboxes"].as_array().empty());
}

TEST(Api, BadExecsAreRefusedWithTheFieldNamed) {
  TestServer server;
  std::string path = "/v1/sandboxes/" + create_sandbox(server) + "/execs";
  const BadBody kBodies[] = {
      {"{}", 400, "missing_field", "cmd"},
      {R"({"cmd":[]})", 400, "invalid_field", "cmd"},
      {R"({"cmd":[""]})", 400, "invalid_field", "cmd"},
      {R"({"cmd":"ls"})", 400, "invalid_field", "cmd"},
      {R"({"cmd":["ls",1]})", 400, "invalid_field", "cmd[1]"},
      {R"({"cmd":["a\u0000b"]})", 400, "invalid_field", "cmd[0]"},
      {R"({"cmd":["ls"],"shell":"ls"})", 400, "invalid_field", "shell"},
      {R"({"cmd":["ls"],"timeout_ms":0})", 400, "invalid_field", "timeout_ms"},
      {R"({"cmd":["ls"],"timeout_ms":-5})", 400, "invalid_field", "timeout_ms"},
      {R"({"cmd":["ls"],"wait":"yes"})", 400, "invalid_field", "wait"},
      {R"({"cmd":["ls"],"cwd":"relative"})", 400, "invalid_field", "cwd"},
      {R"({"cmd":["ls"],"user":""})", 400, "invalid_field", "user"},
      {R"({"cmd":["ls"],"user":"a b"})", 400, "invalid_field", "user"},
      {R"({"cmd":["ls"],"user":"../root"})", 400, "invalid_field", "user"},
      {R"({"cmd":["ls"],"stdin":"x","stdin_base64":"eA=="})", 400, "invalid_field", "stdin_base64"},
      {R"({"cmd":["ls"],"stdin_base64":"eA="})", 400, "invalid_field", "stdin_base64"},
      {R"({"cmd":["ls"],"stdin_base64":"eB=="})", 400, "invalid_field", "stdin_base64"},
      {R"({"cmd":["ls"],"stdin_open":1})", 400, "invalid_field", "stdin_open"},
      {R"({"cmd":["ls"],"pty":true})", 400, "invalid_field", "pty"},
      {R"({"cmd":["ls"],"pty":{"cols":80}})", 400, "missing_field", "pty.rows"},
      {R"({"cmd":["ls"],"pty":{"cols":80,"rows":0}})", 400, "invalid_field", "pty.rows"},
      {R"({"cmd":["ls"],"pty":{"cols":1001,"rows":1}})", 400, "invalid_field", "pty.cols"},
      {R"({"cmd":["ls"],"limits":[]})", 400, "invalid_field", "limits"},
      {R"({"cmd":["ls"],"limits":{"memory_bytes":1}})", 400, "unknown_field",
       "limits.memory_bytes"},
      {R"({"cmd":["ls"],"limits":{"cpu_time_ms":0}})", 400, "invalid_field", "limits.cpu_time_ms"},
      {R"({"cmd":["ls"],"limits":{"output_bytes":67108865}})", 400, "invalid_field",
       "limits.output_bytes"},
      {R"({"cmd":["ls"],"limits":{"open_files":15}})", 400, "invalid_field", "limits.open_files"},
      {R"({"cmd":["ls"],"limits":{"open_files":1025}})", 400, "invalid_field", "limits.open_files"},
      {R"({"cmd":["ls"],"on_output_limit":"warn"})", 400, "invalid_field", "on_output_limit"},
  };
  for (const BadBody& bad : kBodies) {
    auto response = server.send(Method::kPost, path, bad.body);
    EXPECT_EQ(response.status, bad.status) << bad.body;
    json::object error = error_of(response);
    EXPECT_EQ(text_of(error, "code"), bad.code) << bad.body;
    EXPECT_EQ(text_of(error, "field"), bad.field) << bad.body;
  }
  EXPECT_TRUE(body_of(server.send(Method::kGet, path))["execs"].as_array().empty());
  for (const char* id : {"e1", "e0", "e01", "1", "e-1", "e99999999999", "%65%31", "e1%00"})
    EXPECT_EQ(server.send(Method::kGet, path + "/" + id).status, 404) << id;
}

TEST(Api, OversizedBodyIs413) {
  TestServer server;
  std::string body = R"({"template":")" + std::string(kMaxBodyBytes, 'a') + "\"}";
  auto response = server.send(Method::kPost, "/v1/sandboxes", body);
  EXPECT_EQ(response.status, 413);
  EXPECT_EQ(text_of(error_of(response), "code"), "body_too_large");
}

TEST(Api, BodyMustSayThatItIsJson) {
  TestServer server;
  http::Headers plain{{"Authorization", "Bearer " + server.key}, {"Content-Type", "text/plain"}};
  auto response = server.send_as(Method::kPost, "/v1/sandboxes", plain, R"({"template":"python"})");
  EXPECT_EQ(response.status, 415);
}

TEST(Api, NoCapacityIs503WithRetryAfter) {
  TestServer server;
  for (size_t i = 0; i < server.bed.budget.sandboxes; ++i) create_sandbox(server);
  auto response = server.send(Method::kPost, "/v1/sandboxes", R"({"template":"python"})");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(text_of(error_of(response), "code"), "no_capacity");
  EXPECT_TRUE(response.headers.find("Retry-After").has_value());
}

TEST(Base64, IsThatOfRfc4648) {
  EXPECT_EQ(to_base64(""), "");
  EXPECT_EQ(to_base64("f"), "Zg==");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(to_base64("foo"), "Zm9v");
  EXPECT_EQ(to_base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(to_base64("\xff\xfe"), "//4=");
}

}  // namespace
}  // namespace atl::api
