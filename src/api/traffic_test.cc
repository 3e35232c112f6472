#include "api/traffic.h"

#include <gtest/gtest.h>

#include "api/test_server.h"
#include "http/test_server.h"

namespace atl::api {
namespace {

using http::Method;
using http::RawPeer;
using std::chrono::milliseconds;

TEST(Buckets, GiveSoManyAtOnceAndThenSoManyASecond) {
  FakeClock clock;
  Buckets buckets(3, 2);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(buckets.take("a", clock.steady_now())) << i;
  EXPECT_FALSE(buckets.take("a", clock.steady_now()));
  EXPECT_TRUE(buckets.take("b", clock.steady_now()));
  clock.advance(milliseconds(500));
  EXPECT_TRUE(buckets.take("a", clock.steady_now()));
  EXPECT_FALSE(buckets.take("a", clock.steady_now()));
  buckets.give_back("a", clock.steady_now());
  EXPECT_TRUE(buckets.take("a", clock.steady_now()));
  clock.advance(std::chrono::hours(1));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(buckets.take("a", clock.steady_now())) << i;
  EXPECT_FALSE(buckets.take("a", clock.steady_now()));
}

TEST(Buckets, AreNeverMoreThanFitAndThoseBeyondShareOne) {
  FakeClock clock;
  Buckets buckets(2, 1);
  for (int i = 0; i < 20'000; ++i) buckets.take(std::to_string(i), clock.steady_now());
  EXPECT_LE(buckets.size(), 4097u);
  EXPECT_FALSE(buckets.take("new", clock.steady_now()));
  clock.advance(std::chrono::seconds(10));
  EXPECT_TRUE(buckets.take("new", clock.steady_now()));
  EXPECT_LE(buckets.size(), 2u);
}

std::string code_of(const http::Response& response) {
  size_t begin = response.body.find(R"("code":")") + 8;
  return response.body.substr(begin, response.body.find('"', begin) - begin);
}

TEST(Traffic, MoreRequestsThanAKeyMayMakeAreRefused) {
  TestServer server({}, {.requests_per_second = 5});
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(server.send(Method::kGet, "/v1/sandboxes").status, 200) << i;
  auto refused = server.send(Method::kGet, "/v1/sandboxes");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(code_of(refused), "rate_limited");
  EXPECT_EQ(refused.headers.find("Retry-After"), "1");
  EXPECT_EQ(server.send(Method::kGet, "/healthz").status, 200);
  server.run_inside([&] { server.bed.clock.advance(milliseconds(1000)); });
  http::Response other = server.send(Method::kPost, "/v1/keys", R"({"tenant":"other"})");
  ASSERT_EQ(other.status, 201) << other.body;
}

TEST(Traffic, WithoutARateAnyNumberIsServed) {
  TestServer server({}, {.requests_per_second = 0});
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(server.send(Method::kGet, "/v1/sandboxes").status, 200) << i;
}

TEST(Traffic, WrongKeysFromOneAddressAreBoundedAndRightOnesServed) {
  TestServer server({}, {.wrong_keys = 3, .wrong_keys_per_second = 1});
  auto status_of = [&](const std::string& key) {
    http::Headers headers{{"Authorization", "Bearer " + key}};
    return server.send_as(Method::kGet, "/v1/sandboxes", headers).status;
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status_of("wrong"), 401) << i;
  EXPECT_EQ(status_of("wrong"), 429);
  // Not known yet, so it is refused like a wrong one, until there is room again.
  EXPECT_EQ(status_of(server.key), 429);
  server.run_inside([&] { server.bed.clock.advance(milliseconds(1000)); });
  EXPECT_EQ(status_of(server.key), 200);
  EXPECT_EQ(status_of("wrong"), 401) << "a right key costs none";
  EXPECT_EQ(status_of("wrong"), 429);
  EXPECT_EQ(status_of(server.key), 200);
}

RawPeer follow(TestServer& server, const std::string& target) {
  RawPeer peer(server.port);
  peer.send("GET " + target + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
            server.key + "\r\nAccept: text/event-stream\r\n\r\n");
  return peer;
}

TEST(Traffic, ATenantHasOnlySoManyStreamsOpen) {
  TestServer server({}, {.long_requests = 3});
  auto created = server.send(Method::kPost, "/v1/sandboxes", R"({"template":"python"})");
  std::string id = created.body.substr(created.body.find(R"("id":")") + 6, SandboxId::kLength);
  std::string sandbox = "/v1/sandboxes/" + id;
  ASSERT_EQ(server.send(Method::kPost, sandbox + "/execs", R"({"cmd":["hang"]})").status, 202);
  {
    RawPeer first = follow(server, sandbox + "/execs/e1/output");
    RawPeer second = follow(server, sandbox + "/execs/e1/output");
    RawPeer third = follow(server, sandbox + "/execs/e1?wait_ms=60000");
    EXPECT_NE(first.read_until("\r\n\r\n"), "");
    EXPECT_NE(second.read_until("\r\n\r\n"), "");
    EXPECT_TRUE(server.has_connections_in_time(4));
    // The third may not have got to its wait.
    EXPECT_TRUE(
        eventually([&] { return server.send(Method::kGet, sandbox + "/execs/e1").status == 429; }));
    auto refused = server.send(Method::kPost, sandbox + "/execs", R"({"cmd":["hang"]})");
    EXPECT_EQ(code_of(refused), "too_many_streams");
    EXPECT_EQ(refused.headers.find("Retry-After"), "1");
    EXPECT_EQ(server.send(Method::kGet, sandbox).status, 200) << "short ones are served";
  }
  EXPECT_TRUE(server.has_connections_in_time(1));
  EXPECT_EQ(server.send(Method::kGet, sandbox + "/execs/e1").status, 200);
  EXPECT_EQ(server.send(Method::kDelete, sandbox).status, 204);
}

}  // namespace
}  // namespace atl::api
