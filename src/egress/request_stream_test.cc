#include "egress/request_stream.h"

#include <gtest/gtest.h>

namespace atl::egress {
namespace {

RequestStream stream(uint16_t port = 80) { return {*HostName::parse("a.example"), port}; }

std::string request(const std::string& more = "", const std::string& line = "GET /x HTTP/1.1") {
  return line + "\r\nHost: a.example\r\n" + more + "\r\n";
}

std::string reason_of(const std::string& bytes) {
  auto passed = stream().pass(bytes);
  return passed ? "passed " + std::to_string(*passed) : passed.error().reason();
}

TEST(RequestStream, PassesRequestsForItsName) {
  RequestStream requests = stream();
  std::string bytes = request() + request("Content-Length: 3\r\n", "POST /y?z HTTP/1.1") + "abc" +
                      request("Transfer-Encoding: chunked\r\n", "PUT / HTTP/1.1") +
                      "5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n" + request();
  auto passed = requests.pass(bytes);
  ASSERT_TRUE(passed.ok()) << passed.error().message();
  EXPECT_EQ(*passed, bytes.size());
  EXPECT_EQ(requests.requests(), 4u);
  EXPECT_EQ(requests.method(), "GET");
  EXPECT_EQ(requests.path(), "/x");
}

TEST(RequestStream, AnAddressIsItsOwnHost) {
  auto passes = [](const char* to, const std::string& host) {
    RequestStream requests(*Address::parse(to), 8080);
    return requests.pass("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n").ok();
  };
  EXPECT_TRUE(passes("10.0.0.1", "10.0.0.1"));
  EXPECT_TRUE(passes("10.0.0.1", "10.0.0.1:8080"));
  EXPECT_TRUE(passes("fd00::1", "[fd00:0::1]:8080"));
  for (const char* host : {"10.0.0.2", "10.0.0.1:80", "010.0.0.1", "a.example", "[10.0.0.1]",
                           "10.0.0.1:", "10.0.0.1:08080", "167772161"})
    EXPECT_FALSE(passes("10.0.0.1", host)) << host;
  EXPECT_FALSE(passes("fd00::1", "fd00::1"));
  EXPECT_FALSE(passes("fd00::1", "[fd00::1"));
}

TEST(RequestStream, PassesTheSameInPieces) {
  std::string bytes = request("Transfer-Encoding: chunked\r\n", "PUT / HTTP/1.1") +
                      "5\r\nhello\r\n0\r\n\r\n" + request("Content-Length: 4\r\n") + "body";
  for (size_t piece : {1, 2, 5, 17}) {
    RequestStream requests = stream();
    std::string waiting;
    size_t total = 0;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      waiting += bytes.substr(at, piece);
      auto passed = requests.pass(waiting);
      ASSERT_TRUE(passed.ok()) << passed.error().message();
      total += *passed;
      waiting.erase(0, *passed);
    }
    EXPECT_EQ(total, bytes.size());
    EXPECT_EQ(requests.requests(), 2u);
  }
}

TEST(RequestStream, LooksAtEveryRequestOfAConnection) {
  RequestStream requests = stream();
  ASSERT_TRUE(requests.pass(request()).ok());
  auto second = requests.pass("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().reason(), "host_mismatch");
}

TEST(RequestStream, TheHostMustBeTheName) {
  auto with_host = [](const std::string& host) {
    return reason_of("GET / HTTP/1.1\r\n" + host + "\r\n");
  };
  for (const char* host : {"Host: a.example:80\r\n", "hOsT: A.EXAMPLE\r\n"})
    EXPECT_TRUE(with_host(host).starts_with("passed")) << host;
  for (const char* host :
       {"Host: b.example\r\n", "Host: a.example.\r\n", "Host: a.example:81\r\n",
        "Host: a.example:080\r\n", "Host: x@a.example\r\n", "Host: a.example, b.example\r\n",
        "Host: \r\n", "Host: a.example:\r\n", "Host: a.example b\r\n"})
    EXPECT_EQ(with_host(host), "host_mismatch") << host;
  EXPECT_EQ(with_host(""), "bad_http");
  EXPECT_EQ(with_host("Host: a.example\r\nHost: a.example\r\n"), "bad_http");
  EXPECT_EQ(reason_of("GET / HTTP/1.0\r\n\r\n"), "host_mismatch");
}

TEST(RequestStream, RefusesShapesThatSmuggle) {
  for (const std::string& bytes : {
           request("", "GET http://b.example/ HTTP/1.1"),
           request("", "CONNECT b.example:443 HTTP/1.1"),
           request("", "PRI * HTTP/2.0"),
           request("", "GET /"),
           request("", "GET / HTTP/1.1 "),
           request("", "GET  / HTTP/1.1"),
           request("Content-Length: 1\r\nContent-Length: 1\r\n"),
           request("Content-Length: +1\r\n"),
           request("Content-Length: 0x1\r\n"),
           request("Content-Length: 1, 1\r\n"),
           request("Content-Length: 99999999999999999999\r\n"),
           request("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
           request("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
           request("Transfer-Encoding: x chunked\r\n"),
           request("Transfer-Encoding: gzip, chunked\r\n"),
           request("Transfer-Encoding : chunked\r\n"),
           request("X: a\r\n b\r\n"),
           request("X: a\nY: b\r\n"),
           request("X: a\rY: b\r\n"),
           request(std::string("X: a\0b\r\n", 8)),
           request(" X: a\r\n"),
           std::string("\x16\x03\x01"),
           std::string("\r\n\r\n"),
       })
    EXPECT_EQ(reason_of(bytes), "bad_http") << testing::PrintToString(bytes);
  EXPECT_EQ(reason_of(request("Upgrade: websocket\r\n")), "upgrade_refused");
  EXPECT_EQ(reason_of(request("Upgrade: h2c\r\nHTTP2-Settings: x\r\n")), "upgrade_refused");
}

TEST(RequestStream, RefusesUnusualChunks) {
  std::string head = request("Transfer-Encoding: chunked\r\n", "POST / HTTP/1.1");
  for (const char* body : {"5;x=y\r\nhello\r\n", "\r\n", "x\r\n", "5\nhello\r\n", "+5\r\nhello\r\n",
                           " 5\r\nhello\r\n", "0x5\r\nhello\r\n", "5\r\nhelloX", "5\r\nhello\n",
                           "000000005\r\nhello\r\n", "fffffffff\r\n", "0\r\nTrailer: x\r\n\r\n"})
    EXPECT_EQ(reason_of(head + body), "bad_http") << body;
}

TEST(RequestStream, AHeadHasAnEnd) {
  EXPECT_EQ(reason_of("GET / HTTP/1.1\r\nX: " + std::string(kMaxRequestHeadBytes, 'a')),
            "bad_http");
  std::string many;
  for (size_t i = 0; i < kMaxRequestFields; ++i) many += "X: y\r\n";
  EXPECT_EQ(reason_of(request(many)), "bad_http");
  EXPECT_EQ(reason_of("GET / HT"), "passed 0");
}

}  // namespace
}  // namespace atl::egress
