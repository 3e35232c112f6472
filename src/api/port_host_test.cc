#include "api/port_host.h"

#include <gtest/gtest.h>

namespace atl::api {
namespace {

const std::string kId = "sabcdefghijklmnopqrs";

http::Request request(std::string path, std::string query) {
  http::Request made;
  made.path = std::move(path);
  made.query = std::move(query);
  return made;
}

TEST(PortHost, IsAPortASandboxAndADomain) {
  auto found = parse_port_host("8000-" + kId + ".atoll.example");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->port, "8000");
  EXPECT_EQ(found->sandbox, kId);
  EXPECT_EQ(found->domain, "atoll.example");
  for (const std::string& name :
       {"8000-" + kId, kId + ".a", "-" + kId + ".a", "x-" + kId + ".a", "800000-" + kId + ".a",
        std::string("8000-short.a"), "8000-" + kId + "x.a", "8000.a-" + kId + ".b", std::string()})
    EXPECT_FALSE(parse_port_host(name).has_value()) << name;
}

TEST(PortHost, EveryPathIsOneOfThePort) {
  PortHost host{"80", kId, "localhost"};
  std::string base = "/v1/sandboxes/" + kId + "/ports/80";
  EXPECT_EQ(port_path(host, request("/", "")), base + "/");
  EXPECT_EQ(port_path(host, request("/v1/keys", "a=b")), base + "/v1/keys");
  EXPECT_EQ(port_path(host, request("*", "")), base + "/");
  EXPECT_EQ(port_path(host, request("/a%2Fb", "x=1&atoll_token=1-2-ab")), base + "~1-2-ab/a%2Fb");
  // Not a token, and not a way to another route.
  for (const char* query : {"atoll_token=", "atoll_token=a%2F..", "atoll_token=a&atoll_token=b"})
    EXPECT_EQ(port_path(host, request("/", query)), base + "/") << query;
}

TEST(PortHost, TheTokenIsNotForThePort) {
  EXPECT_EQ(without_token(""), "");
  EXPECT_EQ(without_token("atoll_token=x"), "");
  EXPECT_EQ(without_token("a=1&atoll_token=x&b=%20&c"), "a=1&b=%20&c");
  EXPECT_EQ(without_token("atoll_token=x&atoll_token=y&d"), "d");
  EXPECT_EQ(without_token("my_atoll_token=x"), "my_atoll_token=x");
}

}  // namespace
}  // namespace atl::api
