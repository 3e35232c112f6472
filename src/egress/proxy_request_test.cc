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

TEST(ProxyRequest, AUrlBecomesARequestToItsServer) {
  std::string bytes =
      "POST http://PyPI.org:8080/a?b=1 HTTP/1.1\r\nHost: pypi.org:8080\r\n"
      "PROXY-Authorization: Basic x\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\nabc";
  EXPECT_EQ(meaning_of(bytes), "pypi.org:8080 3");
  EXPECT_EQ(*(*parse_proxy_request(bytes))->head,
            "POST /a?b=1 HTTP/1.1\r\nHost: pypi.org:8080\r\nContent-Length: 3\r\n"
            "Connection: close\r\n\r\n");
  auto head_of = [](const std::string& url) {
    auto request = parse_proxy_request("GET " + url + " HTTP/1.0\r\n\r\n");
    return request && *request ? *(*request)->head : "none";
  };
  EXPECT_EQ(head_of("http://a.b"), "GET / HTTP/1.0\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(head_of("http://a.b?x"), "GET /?x HTTP/1.0\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(meaning_of("GET http://10.0.0.1/ HTTP/1.1\r\n\r\n"), "10.0.0.1:80 0");
  EXPECT_FALSE((*parse_proxy_request("CONNECT a.b:443 HTTP/1.1\r\n\r\n"))->head.has_value());
}

TEST(ProxyRequest, RefusesUrlsThatAreNone) {
  for (const char* target :
       {"/", "*", "https://a.b/", "ftp://a.b/", "http:/a.b/", "HTTP://a.b/", "http://", "http:///",
        "http://u@a.b/", "http://u:p@a.b/", "http://a.b:0/", "http://a_b/", "http://a.b/#x",
        "http://a.b:80:90/", "http://[a.b]/", "http://a.b\\c/"})
    EXPECT_EQ(meaning_of("GET " + std::string(target) + " HTTP/1.1\r\n\r\n"), "bad_proxy_request")
        << target;
  EXPECT_EQ(meaning_of("GET http://a.b/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n"), "bad_proxy_request");
  EXPECT_EQ(meaning_of("GET http://a.b/ HTTP/1.1\r\nno colon\r\n\r\n"), "bad_proxy_request");
}

TEST(ProxyRequest, RefusesAllElse) {
  EXPECT_EQ(meaning_of("\x05\x01"), "bad_proxy_request");
  EXPECT_EQ(meaning_of(" GET http://a.b/ HTTP/1.1\r\n\r\n"), "bad_proxy_request");
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
