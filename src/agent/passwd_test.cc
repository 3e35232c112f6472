#include "agent/passwd.h"

#include <errno.h>

#include <gtest/gtest.h>

namespace atl::agent {
namespace {

constexpr std::string_view kPasswd =
    "root:x:0:0:root:/root:/bin/bash\n"
    "alice:x:1001:1002:Alice,,,:/home/alice:/bin/zsh\n"
    "toor:x:0:0::/root:\n"
    "bare:x:1003:1003:::\n"
    "last:x:1004:1004::/home/last:/bin/sh";
constexpr std::string_view kGroup =
    "root:x:0:\n"
    "alice:x:1002:alice\n"
    "audio:x:29:bob,alice\n"
    "video:x:44:alicia,malice\n"
    "staff:x:50:alice";

std::optional<Account> choose(std::string_view user, std::string_view passwd = kPasswd,
                              std::string_view group = kGroup) {
  auto choice = parse_user(user);
  return choice ? choose_account(*choice, passwd, group) : std::nullopt;
}

TEST(Passwd, UserIsANameOrNumbers) {
  EXPECT_EQ(parse_user("alice")->name, "alice");
  EXPECT_EQ(parse_user("0")->uid, 0u);
  EXPECT_FALSE(parse_user("1000")->gid);
  EXPECT_EQ(parse_user("65535:65535")->gid, 65535u);
  EXPECT_EQ(parse_user("_apt.x-y$")->name, "_apt.x-y$");
}

TEST(Passwd, AnythingElseIsRefused) {
  using namespace std::string_view_literals;
  for (std::string_view text : {""sv,           "-1"sv,
                                "4294967295"sv, "4294967296"sv,
                                "65536"sv,      "1000:0:extra"sv,
                                "1000:"sv,      ":"sv,
                                ":1000"sv,      "1000:-1"sv,
                                "01000"sv,      "00"sv,
                                "+1"sv,         " 1"sv,
                                "1 "sv,         "0x10"sv,
                                "1000\0"sv,     "root\0"sv,
                                "root\n"sv,     "a:b"sv,
                                "alice:1000"sv, "../etc"sv,
                                "a/b"sv,        "-alice"sv,
                                "1alice"sv,     ".hidden"sv,
                                "1000:65536"sv, "18446744073709551616"sv,
                                "ä"sv,          "#0"sv})
    EXPECT_FALSE(parse_user(text)) << text;
  EXPECT_FALSE(parse_user(std::string(65, 'a')));
}

TEST(Passwd, NamesAndNumbersFindTheirEntry) {
  for (const char* user : {"alice", "1001"}) {
    auto alice = choose(user);
    ASSERT_TRUE(alice) << user;
    EXPECT_EQ(alice->uid, 1001u);
    EXPECT_EQ(alice->gid, 1002u);
    EXPECT_EQ(alice->name, "alice");
    EXPECT_EQ(alice->home, "/home/alice");
    EXPECT_EQ(alice->shell, "/bin/zsh");
    EXPECT_EQ(alice->groups, (std::vector<gid_t>{29, 50}));
  }
  EXPECT_EQ(choose("last")->uid, 1004u) << "a last line without an end";
  EXPECT_EQ(choose("toor")->uid, 0u);
  EXPECT_EQ(choose("toor")->shell, "/bin/sh");
  EXPECT_EQ(choose("bare")->home, "/");
  EXPECT_FALSE(choose("bob"));
}

TEST(Passwd, NumbersNeedNoEntry) {
  auto nobody = choose("1234");
  ASSERT_TRUE(nobody);
  EXPECT_EQ(nobody->gid, 1234u);
  EXPECT_EQ(nobody->name, "1234");
  EXPECT_EQ(nobody->home, "/");
  EXPECT_TRUE(nobody->groups.empty());
  EXPECT_EQ(choose("0", "")->home, "/root");
  EXPECT_EQ(choose("1000", "")->name, "user");
}

TEST(Passwd, ChoiceWithAGroupIsExact) {
  auto exact = choose("1001:7");
  ASSERT_TRUE(exact);
  EXPECT_EQ(exact->uid, 1001u);
  EXPECT_EQ(exact->gid, 7u);
  EXPECT_EQ(exact->home, "/") << "no entry counts";
  EXPECT_TRUE(exact->groups.empty());
}

TEST(Passwd, TwoNamesAreKnownWithoutAnEntry) {
  EXPECT_EQ(choose("user", "")->uid, 1000u);
  EXPECT_EQ(choose("user", "")->home, "/home/user");
  EXPECT_EQ(choose("root", "")->uid, 0u);
  EXPECT_EQ(choose("root", "root:x:1000:1000::/x:/bin/x\n")->uid, 0u) << "root is nobody else";
  EXPECT_EQ(choose("root", "root:x:1000:1000::/x:/bin/x\n")->home, "/root");
  EXPECT_EQ(choose("user", "user:x:1005:1005::/x:/bin/x\n")->uid, 1005u);
}

TEST(Passwd, MalformedLinesAreNone) {
  for (const char* passwd :
       {"bob", "bob:x:1", "bob:x:-1:1::/:/bin/sh", "bob:x:70000:1::/:/bin/sh", "bob:x:1:1::/",
        "bob:x::1::/:/bin/sh", "bob:x:1:1::/:/bin/sh:more", "bob:x: 1:1::/:/bin/sh",
        "\nbobby:x:1:1::/:/bin/sh\n", "+bob::::::\n", "bob:x:1e3:1::/:/bin/sh"})
    EXPECT_FALSE(choose("bob", passwd)) << passwd;
  std::string filler(kMaxAccountLineBytes, 'x');
  EXPECT_FALSE(choose("bob", "bob:x:1:1:" + filler + ":/:/bin/sh\n"));
  EXPECT_TRUE(choose("bob", "bob:x:x:1::/:/bin/sh\nbob:x:1:1::/:/bin/sh\n")) << "the next counts";
}

TEST(Passwd, PathsThatAreNoneAreReplaced) {
  using namespace std::string_literals;
  EXPECT_EQ(choose("bob", "bob:x:1:1::relative:sh")->home, "/");
  EXPECT_EQ(choose("bob", "bob:x:1:1::relative:sh")->shell, "/bin/sh");
  EXPECT_EQ(choose("bob", "bob:x:1:1::/a\0b:/bin/sh"s)->home, "/");
}

TEST(Passwd, GroupsAreBounded) {
  std::string group;
  for (int gid = 100; gid < 1100; ++gid)
    group += "g" + std::to_string(gid) + ":x:" + std::to_string(gid) + ":alice\n" +
             "again:x:100:alice\n";
  auto alice = choose("alice", kPasswd, group);
  ASSERT_TRUE(alice);
  EXPECT_EQ(alice->groups.size(), kMaxGroups);
  EXPECT_EQ(alice->groups.back(), 100u + kMaxGroups - 1) << "none twice";
  EXPECT_TRUE(
      choose("alice", kPasswd, "bad:x:70000:alice\nbad:x:-1:alice\nbad:x:1")->groups.empty());
}

}  // namespace
}  // namespace atl::agent
