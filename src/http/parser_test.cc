#include "http/parser.h"

#include <gtest/gtest.h>

namespace atl::http {
namespace {

// The status a request header is refused with; 0 when it is accepted.
int refusal_of(std::string_view header) {
  HeaderScanner scanner;
  auto length = scanner.scan(header);
  if (!length.ok()) return 400;
  if (*length != header.size()) return -1;
  RequestParser parser;
  auto refused = parser.parse_header(header);
  return refused ? refused->status : 0;
}

int refusal_with(std::string_view fields) {
  return refusal_of("POST /a HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "\r\n");
}

TEST(HeaderScanner, FindsTheEndWhereverTheBytesAreCut) {
  std::string header = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  for (size_t cut = 0; cut < header.size(); ++cut) {
    HeaderScanner scanner;
    EXPECT_EQ(*scanner.scan(std::string_view(header).substr(0, cut)), 0u);
    EXPECT_EQ(*scanner.scan(header + "rest"), header.size());
  }
}

TEST(HeaderScanner, FindsAFoldWhereverTheBytesAreCut) {
  std::string header = "GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n";
  for (size_t cut = 0; cut < header.find(" folded"); ++cut) {
    HeaderScanner scanner;
    EXPECT_TRUE(scanner.scan(std::string_view(header).substr(0, cut)).ok());
    EXPECT_FALSE(scanner.scan(header).ok()) << cut;
  }
}

TEST(RequestParser, SplitsTheTarget) {
  RequestParser parser;
  ASSERT_FALSE(parser.parse_header("GET /a%20b?x=1?y HTTP/1.1\r\nHost: h\r\nX:  v \r\n\r\n"));
  Request request = parser.take_request();
  EXPECT_EQ(request.method, Method::kGet);
  EXPECT_EQ(request.target, "/a%20b?x=1?y");
  EXPECT_EQ(request.path, "/a%20b");
  EXPECT_EQ(request.query, "x=1?y");
  EXPECT_EQ(request.headers.find("x"), "v");
  EXPECT_TRUE(parser.body_done());
  EXPECT_TRUE(parser.keep_alive());
}

TEST(RequestParser, RefusesAmbiguousLengths) {
  EXPECT_EQ(refusal_with("Content-Length: 5\r\n"), 0);
  EXPECT_EQ(refusal_with("Transfer-Encoding: Chunked\r\n"), 0);
  for (const char* fields : {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                             "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
                             "Content-Length: 5\r\nContent-Length: 5\r\n",
                             "Content-Length: 5\r\nContent-Length: 6\r\n",
                             "Content-Length: 5, 5\r\n",
                             "Content-Length: -5\r\n",
                             "Content-Length: +5\r\n",
                             "Content-Length: 5x\r\n",
                             "Content-Length:\r\n",
                             "Content-Length: 0x5\r\n",
                             "Content-Length: 99999999999999999999\r\n",
                             "Transfer-Encoding: gzip, chunked\r\n",
                             "Transfer-Encoding: chunked, gzip\r\n",
                             "Transfer-Encoding: gzip\r\n",
                             "Transfer-Encoding: xchunked\r\n",
                             "Transfer-Encoding: identity\r\n",
                             "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                             "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
                             "Transfer-Encoding:\r\n",
                             "Transfer-Encoding: chunked, chunked\r\n",
                             "Transfer-Encoding: \"chunked\"\r\n"}) {
    EXPECT_EQ(refusal_with(fields), 400) << fields;
  }
  EXPECT_EQ(refusal_of("POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
}

TEST(RequestParser, RefusesBadFields) {
  for (const char* fields : {"X : y\r\n", ": y\r\n", "X y\r\n", "X\r\n", "X: a\r\n b\r\n",
                             "X: a\r\n\tb\r\n", "X: a\x01\r\n", "X: a\x7f\r\n", "X: a\rb\r\n",
                             "X: a\nY: b\r\n", "Host: h\r\n", "X(y): z\r\n", "\xc3\xa4: z\r\n"}) {
    EXPECT_EQ(refusal_with(fields), 400) << fields;
  }
  EXPECT_EQ(refusal_with(std::string_view("X: a\0b\r\n", 8)), 400);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\n folded: x\r\nHost: h\r\n\r\n"), 400);
}

TEST(RequestParser, RequiresOneHost) {
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nX: y\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET / HTTP/1.0\r\n\r\n"), 0);
  EXPECT_EQ(refusal_of("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
}

TEST(RequestParser, AcceptsOnlyPathsAsTarget) {
  for (const char* line : {"GET http://h/ HTTP/1.1", "CONNECT h:80 HTTP/1.1", "GET * HTTP/1.1",
                           "GET a HTTP/1.1", "GET ?x HTTP/1.1", "OPTIONS ** HTTP/1.1"}) {
    EXPECT_EQ(refusal_of(std::string(line) + "\r\nHost: h\r\n\r\n"), 400) << line;
  }
  EXPECT_EQ(refusal_of("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"), 0);
}

TEST(RequestParser, TellsVersionsFromRubbish) {
  EXPECT_EQ(refusal_of("GET / HTTP/2.0\r\nHost: h\r\n\r\n"), 505);
  EXPECT_EQ(refusal_of("GET / HTTP/1.2\r\nHost: h\r\n\r\n"), 505);
  EXPECT_EQ(refusal_of("GET / HTTP/0.9\r\nHost: h\r\n\r\n"), 505);
  for (const char* line : {"GET /a b HTTP/1.1", "GET / HTTQ/1.1", "GET /", "GET  / HTTP/1.1", "GET",
                           "GET / HTTP/1.1 ", "GET / http/1.1", "(GET) / HTTP/1.1"}) {
    EXPECT_EQ(refusal_of(std::string(line) + "\r\nHost: h\r\n\r\n"), 400) << line;
  }
}

TEST(RequestParser, KnowsOneExpectation) {
  RequestParser parser;
  ASSERT_FALSE(parser.parse_header(
      "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n\r\n"));
  EXPECT_TRUE(parser.expects_continue());
  EXPECT_EQ(refusal_with("Expect: 200-ok\r\n"), 417);
}

// What decode() makes of `wire` in steps of `step` bytes; nothing when it is refused.
std::optional<std::string> decode_in_steps(std::string_view wire, size_t step, size_t room) {
  RequestParser parser;
  if (parser.parse_header("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")) {
    return std::nullopt;
  }
  std::string body;
  std::string into(room, '\0');
  size_t begin = 0;
  size_t end = 0;
  while (!parser.body_done()) {
    auto decoded = parser.decode(wire.substr(begin, end - begin), into);
    if (!decoded.ok()) return std::nullopt;
    begin += decoded->consumed;
    body.append(into, 0, decoded->produced);
    if (decoded->produced > 0 || parser.body_done()) continue;
    if (end == wire.size()) return std::nullopt;
    end = std::min(end + step, wire.size());
  }
  return begin == wire.size() ? std::optional(body) : std::nullopt;
}

TEST(RequestParser, DecodesChunksWhereverTheyAreCut) {
  std::string wire =
      "5\r\nhello\r\n1;a=b\r\n \r\nA;c=\"d\"\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
  for (size_t step = 1; step <= wire.size(); ++step) {
    for (size_t room : {1, 3, 100}) {
      EXPECT_EQ(decode_in_steps(wire, step, room), "hello 0123456789") << step << " " << room;
    }
  }
}

TEST(RequestParser, DecodesAnEmptyChunkedBodyByteByByte) {
  EXPECT_EQ(decode_in_steps("0\r\n\r\n", 1, 100), "");
}

TEST(RequestParser, GivesTheBytesOfAChunkBeforeItsEnd) {
  RequestParser parser;
  ASSERT_FALSE(
      parser.parse_header("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"));
  char into[8];
  EXPECT_EQ(parser.decode("4\r\nab", into)->produced, 2u);
  EXPECT_EQ(parser.decode("c", into)->produced, 1u);
}

TEST(RequestParser, RefusesBadChunks) {
  for (const char* wire :
       {"x\r\n", "5\nhello\n0\n\n", "5\r\nhelloX\r\n0\r\n\r\n", "-1\r\n\r\n", "0x5\r\nhello\r\n",
        "fffffffffffffffff\r\n", "5 \r\nhello\r\n0\r\n\r\n", "\r\n", "0\r\nbad trailer\r\n\r\n",
        "0\r\nContent-Length: 5\r\n\r\n", "5;\r\nhello\r\n0\r\n\r\n"}) {
    for (size_t step : {1, 100}) EXPECT_FALSE(decode_in_steps(wire, step, 100)) << wire;
  }
}

TEST(ResponseParser, ReadsToTheEndWithoutALength) {
  ResponseParser parser;
  ASSERT_TRUE(parser.parse_header("HTTP/1.1 200 OK\r\n\r\n", Method::kGet).ok());
  char into[8];
  auto decoded = parser.decode("abc", into);
  EXPECT_EQ(decoded->produced, 3u);
  EXPECT_FALSE(parser.body_done());
  EXPECT_TRUE(parser.finish().ok());
  EXPECT_FALSE(parser.keep_alive());
}

TEST(ResponseParser, NoticesATruncatedBody) {
  ResponseParser parser;
  ASSERT_TRUE(
      parser.parse_header("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Method::kGet).ok());
  char into[8];
  ASSERT_TRUE(parser.decode("abc", into).ok());
  EXPECT_EQ(parser.finish().error().code(), Code::kUnavailable);
}

TEST(ResponseParser, RefusesAStatusThatIsNone) {
  for (std::string_view status : {"000", "099", "1", "1000", "2 0", "-20"}) {
    ResponseParser parser;
    std::string header = "HTTP/1.1 " + std::string(status) + " x\r\n\r\n";
    EXPECT_FALSE(parser.parse_header(header, Method::kGet).ok()) << status;
  }
}

TEST(ResponseParser, AnswerToHeadHasNoBody) {
  ResponseParser parser;
  ASSERT_TRUE(
      parser.parse_header("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Method::kHead).ok());
  EXPECT_TRUE(parser.body_done());
}

}  // namespace
}  // namespace atl::http
