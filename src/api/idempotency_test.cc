#include <thread>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "api/test_server.h"

namespace atl::api {
namespace {

namespace json = boost::json;
using http::Method;

constexpr const char* kPath = "/v1/sandboxes";
constexpr const char* kBody = R"({"template":"python"})";

http::Headers headers_of(const TestServer& server, const std::string& key) {
  return {{"Authorization", "Bearer " + server.key},
          {"Content-Type", "application/json"},
          {"Idempotency-Key", key}};
}

http::Response post(TestServer& server, const std::string& key, const std::string& path = kPath,
                    const std::string& body = kBody) {
  return server.send_as(Method::kPost, path, headers_of(server, key), body);
}

json::object body_of(const http::Response& response) {
  json::error_code error;
  json::value value = json::parse(response.body, error);
  EXPECT_FALSE(error) << response.body;
  return value.is_object() ? value.as_object() : json::object();
}

std::string code_of(const http::Response& response) {
  json::object body = body_of(response);
  return std::string(body["error"].as_object()["code"].as_string());
}

size_t count(TestServer& server, const std::string& path, const char* what) {
  return body_of(server.send(Method::kGet, path))[what].as_array().size();
}

std::optional<std::string_view> replayed(const http::Response& response) {
  return response.headers.find("Idempotency-Replayed");
}

TEST(ApiIdempotency, SameRequestGetsTheSameAnswer) {
  TestServer server;
  auto first = post(server, "k1");
  ASSERT_EQ(first.status, 201) << first.body;
  EXPECT_FALSE(replayed(first));
  auto second = post(server, "k1");
  EXPECT_EQ(second.status, 201);
  EXPECT_EQ(second.body, first.body);
  EXPECT_EQ(second.headers.find("Location"), first.headers.find("Location"));
  EXPECT_EQ(replayed(second), "true");
  EXPECT_EQ(count(server, kPath, "sandboxes"), 1u);
  EXPECT_NE(post(server, "k2").body, first.body);
  // Also when what it made is gone: it happened once.
  std::string path = std::string(*first.headers.find("Location"));
  EXPECT_EQ(server.send(Method::kDelete, path).status, 204);
  EXPECT_EQ(post(server, "k1").body, first.body);
  EXPECT_EQ(count(server, kPath, "sandboxes"), 1u);
}

TEST(ApiIdempotency, AnotherRequestWithTheKeyIsRefused) {
  TestServer server;
  auto first = post(server, "k1");
  auto other = post(server, "k1", kPath, R"({"template":"python","ttl_ms":5000})");
  EXPECT_EQ(other.status, 422);
  EXPECT_EQ(code_of(other), "idempotency_key_reused");
  EXPECT_EQ(post(server, "k1", "/v1/sandboxes?x").status, 422);
  EXPECT_EQ(count(server, kPath, "sandboxes"), 1u);
}

TEST(ApiIdempotency, RequestThatMadeNothingMayBeTriedAgain) {
  TestServer server;
  EXPECT_EQ(post(server, "k1", kPath, R"({"template":"cobol"})").status, 404);
  EXPECT_EQ(post(server, "k1").status, 201);
  server.run_inside([&] { server.bed.driver->next_launch_error = Error(Code::kUnavailable, "x"); });
  EXPECT_EQ(post(server, "k2").status, 503);
  auto second = post(server, "k2");
  EXPECT_EQ(second.status, 201) << second.body;
  EXPECT_EQ(count(server, kPath, "sandboxes"), 2u);
}

TEST(ApiIdempotency, MalformedKeysAreRefusedAndOtherRoutesTakeNoNotice) {
  TestServer server;
  for (const std::string& key :
       {std::string(), std::string(256, 'a'), std::string("schl\xc3\xbcssel")})
    EXPECT_EQ(post(server, key).status, 400) << key;
  EXPECT_EQ(post(server, std::string(255, '~')).status, 201);
  http::Headers twice = headers_of(server, "a");
  twice.add("Idempotency-Key", "a");
  EXPECT_EQ(server.send_as(Method::kPost, kPath, twice, kBody).status, 400);
  EXPECT_EQ(server
                .send_as(Method::kGet, kPath,
                         {{"Authorization", "Bearer " + server.key}, {"Idempotency-Key", ""}})
                .status,
            200);
}

TEST(ApiIdempotency, ExecRunsOnce) {
  TestServer server;
  std::string path =
      kPath + ("/" + std::string(body_of(post(server, "k1"))["id"].as_string())) + "/execs";
  const char* body = R"({"cmd":["echo","hi"],"wait":true})";
  auto first = post(server, "k2", path, body);
  ASSERT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(body_of(first)["stdout"], "hi\n");
  EXPECT_EQ(post(server, "k2", path, body).body, first.body);
  EXPECT_EQ(count(server, path, "execs"), 1u);
}

// Its answer has more than is stored; what it made is enough to give it again.
TEST(ApiIdempotency, LargeAnswerIsMadeAgainFromWhatTheExecLeft) {
  TestServer server;
  std::string path =
      kPath + ("/" + std::string(body_of(post(server, "k1"))["id"].as_string())) + "/execs";
  const char* body = R"({"cmd":["spam","3000000"],"wait":true})";
  auto first = post(server, "k2", path, body);
  ASSERT_EQ(first.status, 200);
  ASSERT_GT(first.body.size(), store::kMaxAnswerBytes);
  auto second = post(server, "k2", path, body);
  EXPECT_EQ(second.status, 200);
  EXPECT_TRUE(second.body == first.body);
  EXPECT_EQ(replayed(second), "true");
  EXPECT_EQ(count(server, path, "execs"), 1u);
}

TEST(ApiIdempotency, OfAHundredEqualRequestsAtOnceOneHappensAndAllGetItsAnswer) {
  TestServer server;
  constexpr size_t kRequests = 100;
  std::vector<http::Response> answers(kRequests);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kRequests; ++i)
    threads.emplace_back([&, i] {
      auto client = http::Client::create("127.0.0.1", server.port, 2 * test_timeout());
      auto sent = client->send(Method::kPost, kPath, headers_of(server, "k1"), kBody);
      if (sent) answers[i] = std::move(*sent);
    });
  for (std::thread& thread : threads) thread.join();
  size_t first = 0;
  for (const http::Response& answer : answers) {
    EXPECT_EQ(answer.status, 201) << answer.body;
    EXPECT_EQ(answer.body, answers[0].body);
    first += replayed(answer) ? 0 : 1;
  }
  EXPECT_EQ(first, 1u);
  EXPECT_EQ(count(server, kPath, "sandboxes"), 1u);
}

}  // namespace
}  // namespace atl::api
