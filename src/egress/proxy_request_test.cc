#include "egress/proxy_request.h"

#include <gtest/gtest.h>

#include "egress/upstream.h"

namespace atl::egress {
namespace {

std::string meaning_of(const std::string& bytes) {
  auto request = parse_proxy_request(bytes);
  if (!request) return request.error().reason();
  if (!*request) return "more";
  return authority_text((*request)->to, (*request)->port) + " " +
         std::to_string(bytes.size() - (*request)->bytes);
}

TEST(ProxyRequest, NamesADestination) {
  EXPECT_EQ(meaning_of("CONNECT PyPI.org:443 HTTP/1.1\r\nHost: pypi.org:443\r\n\r\n"),
            "pypi.org:443 0");
  EXPECT_EQ(meaning_of("CONNECT 10.0.0.1:22 HTTP/1.0\r\n\r\nabc"), "10.0.0.1:22 3");
  EXPECT_EQ(meaning_of("CONNECT [fd00::1]:22 HTTP/1.1\r\n\r\n"), "[fd00::1]:22 0");
}

TEST(ProxyRequest, WaitsForItsEnd) {
  std::string whole = "CONNECT a.b:443 HTTP/1.1\r\nHost: a.b\r\n\r\n";
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(meaning_of(whole.substr(0, i)), "more") << i;
}

TEST(ProxyRequest, RefusesAllElse) {
  EXPECT_EQ(meaning_of("GET http://a.b/ HTTP/1.1\r\n\r\n"), "connect_only");
  EXPECT_EQ(meaning_of("\x05\x01"), "connect_only");
  for (const char* target :
       {"a.b", "a.b:0", "a.b:65536", "a.b:+1", "a_b:1", "a.b:1 x", "u@a.b:1", "[a.b]:1",
        "10.0.0.1.:1", "0x7f.1:80", "a.b:1:2", ":1", "http://a.b:1", "[::1%lo]:1", "a.b.:1"})
    EXPECT_EQ(meaning_of("CONNECT " + std::string(target) + " HTTP/1.1\r\n\r\n"),
              "bad_proxy_request")
        << target;
  EXPECT_EQ(meaning_of("CONNECT a.b:1 HTTP/2.0\r\n\r\n"), "bad_proxy_request");
  EXPECT_EQ(meaning_of("CONNECT a.b:1\r\n\r\n"), "bad_proxy_request");
  EXPECT_EQ(meaning_of("CONNECT a.b:1 HTTP/1.1\n\n"), "bad_proxy_request");
  EXPECT_EQ(meaning_of("CONNECT " + std::string(kMaxProxyHeadBytes, 'a')), "bad_proxy_request");
}

}  // namespace
}  // namespace atl::egress
