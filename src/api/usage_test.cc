#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "api/test_server.h"

namespace atl::api {
namespace {

namespace json = boost::json;
using http::Method;

json::object get(TestServer& server, const std::string& target) {
  auto answer = server.send(Method::kGet, target);
  EXPECT_EQ(answer.status, 200) << answer.body;
  return json::parse(answer.body).as_object();
}

TEST(Usage, IsOfExecsThatHaveEnded) {
  TestServer server;
  EXPECT_TRUE(get(server, "/v1/usage").at("since").is_null());
  auto made = server.send(Method::kPost, "/v1/sandboxes", R"({"template": "python"})");
  std::string sandbox(json::parse(made.body).at("id").as_string());
  std::string target = "/v1/sandboxes/" + sandbox;
  for (const char* body : {R"({"cmd": ["echo", "abc"], "wait": true})", R"({"cmd": ["hang"]})"})
    ASSERT_LT(server.send(Method::kPost, target + "/execs", body).status, 300);

  json::object one = get(server, target + "/usage");
  EXPECT_EQ(one.at("execs"), 1);
  EXPECT_EQ(one.at("execs_running"), 1);
  EXPECT_EQ(one.at("output_bytes"), 4);
  json::object all = get(server, "/v1/usage");
  EXPECT_EQ(all.at("sandboxes"), 1);
  EXPECT_EQ(all.at("sandboxes_living"), 1);
  EXPECT_EQ(all.at("execs"), 1);
  EXPECT_EQ(all.at("execs_running"), 1);

  ASSERT_EQ(server.send(Method::kDelete, target).status, 204);
  EXPECT_EQ(server.send(Method::kGet, target + "/usage").status, 404);
  all = get(server, "/v1/usage");
  EXPECT_EQ(all.at("sandboxes"), 1);
  EXPECT_EQ(all.at("sandboxes_living"), 0);
  EXPECT_EQ(all.at("execs"), 2);
  EXPECT_EQ(all.at("execs_running"), 0);
}

TEST(Usage, IsTheTenantsOwn) {
  TestServer server;
  ASSERT_EQ(server.send(Method::kPost, "/v1/sandboxes", R"({"template": "python"})").status, 201);
  auto made = server.send(Method::kPost, "/v1/keys", R"({"tenant": "acme", "name": "ci"})");
  std::string key(json::parse(made.body).at("key").as_string());
  auto theirs = server.send_as(Method::kGet, "/v1/usage", {{"Authorization", "Bearer " + key}});
  EXPECT_EQ(json::parse(theirs.body).at("sandboxes"), 0);
  EXPECT_EQ(json::parse(theirs.body).at("sandboxes_living"), 0);
}

}  // namespace
}  // namespace atl::api
