#include "egress/request_path.h"

#include <gtest/gtest.h>

#include "egress/request_rule.h"

namespace atl::egress {
namespace {

std::string canonical(std::string_view path) {
  auto result = canonical_path(path);
  return result ? *result : "refused";
}

TEST(RequestPath, EscapesOfPlainCharactersAreUndone) {
  EXPECT_EQ(canonical("/"), "/");
  EXPECT_EQ(canonical("/v1/%6dodels"), "/v1/models");
  EXPECT_EQ(canonical("/a%2db%7E"), "/a-b~");
  EXPECT_EQ(canonical("/caf%c3%a9"), "/caf%C3%A9");
  EXPECT_EQ(canonical("/@scope%2fname"), "/@scope%2Fname");
  EXPECT_EQ(canonical("/a/"), "/a/");
  EXPECT_EQ(canonical("/100%25"), "/100%25");
}

TEST(RequestPath, WhatServersReadInTwoWaysIsRefused) {
  for (const char* path :
       {"",      "v1",          "*",         "/a/../b",     "/a/..",          "/a/./b",
        "/.",    "/a/%2e%2e/b", "/a/%2E./b", "/a%2f..%2fb", "/a/..;x=1/b",    "/a//b",
        "//a",   "/a%2f%2fb",   "/a\\b",     "/a%5cb",      "/a%00",          "/a%0d%0ab",
        "/a%7f", "/a%",         "/a%2",      "/a%zz",       "/a%252e%252e/b", "/a%25%32%65",
        "/a\tb"})
    EXPECT_EQ(canonical(path), "refused") << path;
}

TEST(RequestPath, APatternIsWrittenInTheSameForm) {
  for (const char* text : {"v1", "/a/../b", "/%61", "/a%2fb", "/a?b", "/a[", "/a\\*"})
    EXPECT_FALSE(PathPattern::parse(text).ok()) << text;
  auto pattern = PathPattern::parse("/v1/*/files/**");
  ASSERT_TRUE(pattern.ok());
  EXPECT_TRUE(pattern->matches("/v1/a/files/b/c"));
  EXPECT_FALSE(pattern->matches("/v1/a/b/files/c"));
  EXPECT_FALSE(pattern->matches("/v2/a/files/c"));
}

TEST(RequestRule, WithoutListsSpeaksOfEveryRequest) {
  auto rule = RequestRule::create({}, {});
  ASSERT_TRUE(rule.ok());
  EXPECT_TRUE(rule->has_method("DELETE"));
  EXPECT_TRUE(rule->has_path("/x"));
}

TEST(RequestRule, MethodsAreComparedExactly) {
  auto rule = RequestRule::create({"GET", "HEAD"}, {"/a"});
  ASSERT_TRUE(rule.ok());
  EXPECT_TRUE(rule->has_method("HEAD"));
  EXPECT_FALSE(rule->has_method("head"));
  EXPECT_FALSE(rule->has_method("POST"));
  EXPECT_FALSE(rule->has_path("/A"));
  EXPECT_FALSE(RequestRule::create({"get"}, {}).ok());
  EXPECT_FALSE(RequestRule::create({""}, {}).ok());
  EXPECT_FALSE(RequestRule::create(std::vector<std::string>(17, "GET"), {}).ok());
}

}  // namespace
}  // namespace atl::egress
