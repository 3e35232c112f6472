#include "egress/secret_swap.h"

#include <gtest/gtest.h>

namespace atl::egress {
namespace {

const std::string kPlaceholder = "atoll-secret-00112233445566778899aabbccddeeff";

HostName host(std::string_view text) { return *HostName::parse(text); }

Secret token() { return {.name = "TOKEN", .value = "sk-top", .hosts = {host("api.example")}}; }

struct Place {
  std::string host = "api.example";
  std::string path = "/v1/a";
  bool is_tls = true;
};

std::string swap(const std::string& fields, const Secret* secret, const Place& place = {},
                 const std::string& target = "/v1/a") {
  std::string head =
      "GET " + target + " HTTP/1.1\r\nHost: " + place.host + "\r\n" + fields + "\r\n";
  HeldSecret held[] = {{kPlaceholder, secret}};
  HostName name = host(place.host);
  auto swapped = swap_secrets(head, {&name, place.path, place.is_tls}, held);
  if (!swapped) return swapped.error().reason();
  size_t start = swapped->find("\r\n", swapped->find("Host:")) + 2;
  EXPECT_TRUE(swapped->ends_with("\r\n\r\n") || fields.empty());
  return swapped->substr(start, swapped->size() - start - 2);
}

TEST(SecretSwap, APlaceholderInAFieldBecomesTheValue) {
  Secret secret = token();
  EXPECT_EQ(swap("Authorization: Bearer " + kPlaceholder + "\r\n", &secret),
            "Authorization: Bearer sk-top\r\n");
  EXPECT_EQ(swap("A:" + kPlaceholder + "," + kPlaceholder + "\r\nB:b \r\n", &secret),
            "A: sk-top,sk-top\r\nB:b \r\n");
}

TEST(SecretSwap, WhatHoldsNoneIsCopiedByteByByte) {
  Secret secret = token();
  for (const char* fields : {"", "A:b\r\n", "A:  b  \r\nC:\r\n", "A: atoll-secret-other\r\n"})
    EXPECT_EQ(swap(fields, &secret), fields);
}

TEST(SecretSwap, OnlyWhereItIsBound) {
  Secret secret = token();
  secret.paths.push_back(*PathPattern::parse("/v1/**"));
  std::string field = "X: " + kPlaceholder + "\r\n";
  EXPECT_EQ(swap(field, &secret), "X: sk-top\r\n");
  EXPECT_EQ(swap(field, &secret, {.host = "other.example"}), "secret_not_bound");
  EXPECT_EQ(swap(field, &secret, {.path = "/v2"}), "secret_not_bound");
  EXPECT_EQ(swap(field, &secret, {.path = "/v1/../v2"}), "secret_not_bound");
  EXPECT_EQ(swap(field, &secret, {.is_tls = false}), "secret_not_bound");
  EXPECT_EQ(swap(field, nullptr), "secret_not_bound");
  EXPECT_EQ(swap("", &secret, {}, "/v1/a?key=" + kPlaceholder), "secret_not_bound");
  EXPECT_EQ(swap(kPlaceholder + ": x\r\n", &secret), "secret_not_bound");
}

TEST(SecretSwap, AFormIsTheOnlyPlace) {
  Secret secret = token();
  secret.header = HeaderForm{"Authorization", "Bearer ", ""};
  EXPECT_EQ(swap("authorization:  Bearer " + kPlaceholder + "\r\n", &secret),
            "authorization: Bearer sk-top\r\n");
  EXPECT_EQ(swap("Authorization: Token " + kPlaceholder + "\r\n", &secret), "secret_not_bound");
  EXPECT_EQ(swap("X-Key: Bearer " + kPlaceholder + "\r\n", &secret), "secret_not_bound");
  EXPECT_EQ(swap("Authorization: Bearer " + kPlaceholder + "x\r\n", &secret), "secret_not_bound");
}

TEST(SecretSwap, APasswordInBase64IsSwappedToo) {
  Secret secret = token();
  // git:atoll-secret-00112233445566778899aabbccddeeff
  std::string sent =
      "Authorization: Basic "
      "Z2l0OmF0b2xsLXNlY3JldC0wMDExMjIzMzQ0NTU2Njc3ODg5OWFhYmJjY2RkZWVmZg==\r\n";
  EXPECT_EQ(swap(sent, &secret), "Authorization: Basic Z2l0OnNrLXRvcA==\r\n");  // git:sk-top
  EXPECT_EQ(swap(sent, &secret, {.host = "other.example"}), "secret_not_bound");
  EXPECT_EQ(swap("Authorization: Basic ???\r\n", &secret), "Authorization: Basic ???\r\n");
}

TEST(SecretSwap, ManyPlaceholdersOfALargeSecretAreNotWrittenOut) {
  Secret secret = token();
  secret.value = std::string(16 * 1024, 's');
  std::string field = "A: ";
  for (int i = 0; i < 7; ++i) field += kPlaceholder;
  EXPECT_GT(swap(field + "\r\n", &secret).size(), 7u * 16 * 1024);
  EXPECT_EQ(swap(field + kPlaceholder + kPlaceholder + "\r\n", &secret), "bad_http");
  EXPECT_EQ(swap(field + "\r\nB: " + kPlaceholder + kPlaceholder + "\r\n", &secret), "bad_http");
}

}  // namespace
}  // namespace atl::egress
