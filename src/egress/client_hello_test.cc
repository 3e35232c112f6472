#include "egress/client_hello.h"

#include <gtest/gtest.h>

namespace atl::egress {
namespace {

std::string number(size_t value, size_t bytes) {
  std::string out;
  for (size_t i = bytes; i > 0; --i) out.push_back(static_cast<char>(value >> (8 * (i - 1))));
  return out;
}

std::string vector(const std::string& content, size_t length_bytes) {
  return number(content.size(), length_bytes) + content;
}

std::string extension(size_t type, const std::string& content) {
  return number(type, 2) + vector(content, 2);
}

std::string server_name(const std::string& name) {
  return extension(0, vector(number(0, 1) + vector(name, 2), 2));
}

std::string message(const std::string& extensions) {
  std::string body = "\x03\x03" + std::string(32, 'r') + vector(std::string(32, 's'), 1) +
                     vector(std::string("\x13\x01", 2), 2) + vector(std::string(1, '\0'), 1) +
                     vector(extensions, 2);
  return number(1, 1) + vector(body, 3);
}

std::string record(const std::string& content) {
  return std::string("\x16\x03\x01", 3) + vector(content, 2);
}

std::string records(const std::string& content, size_t piece) {
  std::string out;
  for (size_t at = 0; at < content.size(); at += piece) out += record(content.substr(at, piece));
  return out;
}

TEST(ClientHello, GivesTheNameThatIsAskedFor) {
  std::string extensions = extension(10, "x") + server_name("Example.com") + extension(16, "y");
  auto hello = parse_client_hello(record(message(extensions)) + "more");
  ASSERT_TRUE(hello.ok() && *hello);
  EXPECT_EQ((*hello)->server_name, "Example.com");
  EXPECT_FALSE((*hello)->is_encrypted);
}

TEST(ClientHello, MayComeInPieces) {
  std::string whole = message(server_name("a.b"));
  for (size_t piece : {1, 3, 7, 100}) {
    std::string bytes = records(whole, piece);
    for (size_t length = 0; length < bytes.size(); ++length) {
      auto some = parse_client_hello(bytes.substr(0, length));
      ASSERT_TRUE(some.ok()) << piece << " " << length;
      EXPECT_FALSE(some->has_value());
    }
    auto hello = parse_client_hello(bytes);
    ASSERT_TRUE(hello.ok() && *hello);
    EXPECT_EQ((*hello)->server_name, "a.b");
  }
}

TEST(ClientHello, SaysWhenThereIsNoNameOrItIsHidden) {
  auto none = parse_client_hello(record(message(extension(10, "x"))));
  ASSERT_TRUE(none.ok() && *none);
  EXPECT_FALSE((*none)->server_name.has_value());
  for (size_t type : {0xfe0d, 0xffce}) {
    auto hidden = parse_client_hello(record(message(server_name("a.b") + extension(type, "z"))));
    ASSERT_TRUE(hidden.ok() && *hidden);
    EXPECT_TRUE((*hidden)->is_encrypted);
  }
}

TEST(ClientHello, RefusesWhatIsNone) {
  auto refuse = [](const std::string& bytes) {
    EXPECT_FALSE(parse_client_hello(bytes).ok()) << testing::PrintToString(bytes);
  };
  refuse("GET / HTTP/1.1\r\n");
  refuse("SSH-2.0");
  refuse(std::string("\x16\x02\x01", 3));
  refuse(std::string("\x16\x03\x01\x00\x00", 5));
  refuse(std::string("\x16\x03\x01\x40\x01", 5));
  refuse(record(number(2, 1) + vector("x", 3)));
  refuse(record(message(server_name("a.b") + server_name("c.d"))));
  refuse(record(message(server_name(""))));
  std::string two = vector(number(0, 1) + vector("a.b", 2) + number(0, 1) + vector("c.d", 2), 2);
  refuse(record(message(extension(0, two))));
  refuse(record(message(extension(0, vector(number(1, 1) + vector("a.b", 2), 2)))));
  refuse(record(message(extension(0, "\xff"))));
  refuse(record(message(number(5, 2) + number(9, 2))));
  refuse(record(message("") + "x"));
  refuse(record(number(1, 1) + number(1 << 20, 3)));
}

}  // namespace
}  // namespace atl::egress
