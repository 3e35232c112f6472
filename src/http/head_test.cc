#include "http/head.h"

#include <gtest/gtest.h>

namespace atl::http {
namespace {

TEST(ResponseHead, FillsInTheFramingItself) {
  ResponseHead head{.status = 200, .framing = Framing::kLength, .body_bytes = 5};
  Headers headers{{"X-A", "b"}, {"content-length", "9"}, {"Transfer-Encoding", "gzip"}};
  auto text = format_response_head(head, headers);
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(text->starts_with("HTTP/1.1 200 OK\r\nDate: "));
  EXPECT_NE(text->find("\r\nX-A: b\r\n"), std::string::npos);
  EXPECT_NE(text->find("\r\nContent-Length: 5\r\n\r\n"), std::string::npos);
  EXPECT_EQ(text->find("gzip"), std::string::npos);
  EXPECT_EQ(text->find('9', text->find("X-A")), std::string::npos);
}

TEST(ResponseHead, RefusesWhatCouldInjectALine) {
  ResponseHead head;
  for (const Headers& headers : {Headers{{"X", "a\r\nSet-Cookie: b"}}, Headers{{"X\r\nY", "a"}},
                                 Headers{{"X", std::string("a\0b", 3)}}, Headers{{"X Y", "a"}},
                                 Headers{{"X", "a\nb"}}, Headers{{"", "a"}}}) {
    EXPECT_EQ(format_response_head(head, headers).error().code(), Code::kInvalid);
  }
  head.status = 42;
  EXPECT_FALSE(format_response_head(head, {}).ok());
}

TEST(RequestHead, RefusesTargetsThatBreakTheLine) {
  for (const char* target : {"", "/a b", "/a\r\nX: y", "/\x01"}) {
    RequestHead head{.method = Method::kGet, .target = target, .host = "h", .body_bytes = 0};
    EXPECT_FALSE(format_request_head(head, {}).ok()) << target;
  }
  RequestHead head{.method = Method::kPost, .target = "/a", .host = "h:1", .body_bytes = 3};
  EXPECT_EQ(*format_request_head(head, {{"A", "b"}}),
            "POST /a HTTP/1.1\r\nHost: h:1\r\nA: b\r\nContent-Length: 3\r\n\r\n");
}

TEST(ContentLength, IsOneNumberOfDigits) {
  EXPECT_EQ(content_length({{"Content-Length", "12"}}), 12u);
  for (const char* text : {"", "+1", "-1", "1, 1", "0x1", "1 ", "18446744073709551616"}) {
    EXPECT_FALSE(content_length({{"Content-Length", text}})) << text;
  }
  EXPECT_FALSE(content_length({{"Content-Length", "1"}, {"content-length", "1"}}));
}

}  // namespace
}  // namespace atl::http
