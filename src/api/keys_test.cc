#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

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

int status_with(TestServer& server, const std::string& key, const std::string& target) {
  http::Headers headers{{"Authorization", "Bearer " + key}};
  return server.send_as(Method::kGet, target, headers).status;
}

TEST(Keys, AKeyWorksUntilItIsRevoked) {
  TestServer server;
  auto created = server.send(Method::kPost, "/v1/keys", R"({"tenant":"acme","name":"ci"})");
  ASSERT_EQ(created.status, 201) << created.body;
  json::object key = body_of(created);
  EXPECT_EQ(text_of(key, "tenant"), "acme");
  EXPECT_EQ(status_with(server, text_of(key, "key"), "/v1/sandboxes"), 200);
  std::string path = "/v1/keys/" + text_of(key, "id");
  EXPECT_EQ(server.send(Method::kDelete, path).status, 204);
  EXPECT_EQ(status_with(server, text_of(key, "key"), "/v1/sandboxes"), 401);
  EXPECT_EQ(server.send(Method::kDelete, path).status, 404);
}

TEST(Keys, OnlyTheLocalKeyMakesKeys) {
  TestServer server;
  // Also another key of the same tenant.
  for (const char* body : {R"({"tenant":"acme"})", R"({})"}) {
    std::string key = text_of(body_of(server.send(Method::kPost, "/v1/keys", body)), "key");
    EXPECT_EQ(status_with(server, key, "/v1/sandboxes"), 200);
    EXPECT_EQ(status_with(server, key, "/v1/keys"), 403);
  }
  EXPECT_EQ(server.send(Method::kPost, "/v1/keys", R"({"name":"local"})").status, 400);
}

TEST(Keys, TheListShowsNoKeyAndTheLocalOneStays) {
  TestServer server;
  auto created = body_of(server.send(Method::kPost, "/v1/keys", R"({"tenant":"acme"})"));
  auto listed = server.send(Method::kGet, "/v1/keys");
  EXPECT_EQ(listed.body.find(text_of(created, "key")), std::string::npos);
  json::object list = body_of(listed);
  const json::array& keys = list["keys"].as_array();
  ASSERT_EQ(keys.size(), 2u);
  std::string local = text_of(keys[0].as_object(), "id");
  EXPECT_EQ(text_of(keys[0].as_object(), "name"), "local");
  EXPECT_EQ(server.send(Method::kDelete, "/v1/keys/" + local).status, 409);
  EXPECT_EQ(server.send(Method::kGet, "/v1/keys").status, 200);
}

TEST(Keys, ATenantSeesNothingOfAnother) {
  TestServer server;
  auto sandbox = server.send(Method::kPost, "/v1/sandboxes", R"({"template":"python"})");
  std::string path = "/v1/sandboxes/" + text_of(body_of(sandbox), "id");
  auto created = body_of(server.send(Method::kPost, "/v1/keys", R"({"tenant":"acme"})"));
  std::string key = text_of(created, "key");
  EXPECT_EQ(status_with(server, key, path), 404);
  EXPECT_EQ(status_with(server, key, path + "/execs"), 404);
  EXPECT_EQ(server.send(Method::kGet, path).status, 200);
}

TEST(Openapi, IsServedWithoutAKeyAndOnlyWhenItChanged) {
  TestServer server;
  auto first = server.send_as(Method::kGet, "/openapi.json", {});
  ASSERT_EQ(first.status, 200);
  EXPECT_EQ(text_of(body_of(first), "openapi"), "3.1.0");
  std::string tag(*first.headers.find("ETag"));
  auto again = server.send_as(Method::kGet, "/openapi.json", {{"If-None-Match", tag}});
  EXPECT_EQ(again.status, 304);
  EXPECT_TRUE(again.body.empty());
}

}  // namespace
}  // namespace atl::api
