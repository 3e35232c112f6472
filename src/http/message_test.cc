#include "http/message.h"

#include <gtest/gtest.h>

namespace atl::http {
namespace {

TEST(Headers, FindIgnoresCaseAndGivesTheFirst) {
  Headers headers{{"Content-Type", "a"}, {"content-type", "b"}};
  EXPECT_EQ(headers.find("CONTENT-TYPE"), "a");
  EXPECT_EQ(headers.count("content-Type"), 2u);
  EXPECT_FALSE(headers.find("content"));
  EXPECT_EQ(headers.count("content"), 0u);
}

TEST(Headers, ListsLooksAtEveryItemOfEveryField) {
  Headers headers{{"Connection", "keep-alive ,\tUpgrade"}, {"connection", "close"}};
  EXPECT_TRUE(headers.lists("connection", "upgrade"));
  EXPECT_TRUE(headers.lists("connection", "close"));
  EXPECT_TRUE(headers.lists("connection", "keep-alive"));
  EXPECT_FALSE(headers.lists("connection", "up"));
  EXPECT_FALSE(headers.lists("upgrade", "close"));
}

TEST(PercentDecode, DecodesUtf8) {
  EXPECT_EQ(percent_decode("/a%20b%2Fc+d"), "/a b/c+d");
  EXPECT_EQ(percent_decode("%C3%a4"), "ä");
  EXPECT_EQ(percent_decode(""), "");
}

TEST(PercentDecode, RefusesWhatIsMalformed) {
  for (const char* text : {"%", "%4", "%zz", "a%2", "%00", "%ff", "%c0%af", "%ed%a0%80", "\xff"}) {
    EXPECT_FALSE(percent_decode(text)) << text;
  }
}

TEST(QueryParameter, GivesTheDecodedValue) {
  std::string_view query = "offset=10&stream=std%6Fut&text=a+b%2Bc&list&empty=";
  EXPECT_EQ(query_parameter(query, "offset"), "10");
  EXPECT_EQ(query_parameter(query, "stream"), "stdout");
  EXPECT_EQ(query_parameter(query, "text"), "a b+c");
  EXPECT_EQ(query_parameter(query, "list"), "");
  EXPECT_EQ(query_parameter(query, "empty"), "");
  EXPECT_FALSE(query_parameter(query, "off"));
  EXPECT_FALSE(query_parameter("", "offset"));
}

TEST(QueryParameter, RefusesDoublesAndMalformedValues) {
  EXPECT_FALSE(query_parameter("a=1&a=2", "a"));
  EXPECT_FALSE(query_parameter("a=1&%61=1", "a"));
  EXPECT_FALSE(query_parameter("a=%4", "a"));
  EXPECT_EQ(query_parameter("a=1&b=%4", "a"), "1");
}

TEST(QueryParameters, GivesAllValuesInOrderOrNothingIfOneIsMalformed) {
  EXPECT_EQ(query_parameters("a=1&b=2&%61=3+4&a", "a"), (std::vector<std::string>{"1", "3 4", ""}));
  EXPECT_EQ(query_parameters("b=2", "a"), std::vector<std::string>());
  EXPECT_FALSE(query_parameters("a=1&a=%4", "a"));
}

}  // namespace
}  // namespace atl::http
