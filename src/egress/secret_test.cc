#include "egress/secret.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include "base/file.h"
#include "egress/sealed_file.h"
#include "egress/secret_store.h"
#include "egress/secret_use.h"

// g++ 12 sees a free of a text that lies in its own string, where a Result is moved from.
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Wfree-nonheap-object"

namespace atl::egress {
namespace {

constexpr const char* kWhole = R"({"value": "sk-top", "hosts": ["API.example.com"],
  "paths": ["/v1/**"], "header": {"name": "Authorization", "format": "Bearer {}"}})";

const WallTime kNow{std::chrono::milliseconds(1'700'000'000'000)};

Result<Secret> parse(const std::string& name, const std::string& text) {
  return parse_secret(name, boost::json::parse(text).as_object());
}

class SecretStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/atoll-secrets-XXXXXX";
    path_ = mkdtemp(pattern);
    directory_ = *open_file(path_, O_RDONLY | O_DIRECTORY);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  SecretStore open() {
    auto opened = SecretStore::open(directory_.get());
    EXPECT_TRUE(opened.ok());
    return std::move(*opened);
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  std::string path_;
  Fd directory_;
};

TEST(Secret, IsReadStrictlyAndShownWithoutItsValue) {
  auto secret = parse("TOKEN", kWhole);
  ASSERT_TRUE(secret.ok()) << secret.error().message();
  EXPECT_EQ(boost::json::serialize(shown_secret(*secret)),
            R"({"name":"TOKEN","hosts":["api.example.com"],"paths":["/v1/**"],)"
            R"("header":{"name":"Authorization","format":"Bearer {}"},"version":1})");
  EXPECT_TRUE(secret->is_for(*HostName::parse("api.example.com")));
  EXPECT_FALSE(secret->is_for(*HostName::parse("example.com")));
  EXPECT_TRUE(secret->is_for_path("/v1/a"));
  EXPECT_FALSE(secret->is_for_path("/v2/a"));
  EXPECT_FALSE(secret->is_for_path("/v1/../v2"));
}

TEST(Secret, WhatCannotBeHeldIsRefusedWithoutShowingTheValue) {
  const std::pair<const char*, const char*> kRefused[] = {
      {R"({"hosts": ["a.b"]})", "value"},
      {R"({"value": "sk-top"})", "hosts"},
      {R"({"value": "sk-top", "hosts": {}})", "hosts"},
      {R"({"value": "sk-top", "hosts": ["*.b.c"]})", "hosts"},
      {R"({"value": "sk-top\r\nX: y", "hosts": ["a.b"]})", "value"},
      {R"({"value": " sk-top", "hosts": ["a.b"]})", "value"},
      {R"({"value": "", "hosts": ["a.b"]})", "value"},
      {R"({"value": "sk-top", "hosts": ["a.b"], "host": "a"})", "host"},
      {R"({"value": "sk-top", "hosts": ["a.b"], "paths": ["x"]})", "paths"},
      {R"({"value": "sk-top", "hosts": ["a.b"], "header": {"name": "A B"}})", "header.name"},
      {R"({"value": "sk-top", "hosts": ["a.b"], "header": {"name": "A", "format": "x"}})",
       "header.format"},
      {R"({"value": "sk-top", "hosts": ["a.b"], "header": {"name": "A", "format": "{}{}"}})",
       "header.format"}};
  for (const auto& [text, field] : kRefused) {
    auto secret = parse("TOKEN", text);
    ASSERT_FALSE(secret.ok()) << text;
    EXPECT_EQ(secret.error().field(), field) << text;
    EXPECT_EQ(secret.error().message().find("sk-top"), std::string::npos);
  }
  for (const char* name : {"", "1A", "A-B", "A B", "A/B"})
    EXPECT_FALSE(parse(name, kWhole).ok()) << name;
}

TEST(Secret, WithoutHostsIsForFieldsThatAPolicySets) {
  auto secret = parse("my-key.1", R"({"value": "sk-top", "hosts": [], "metadata": {"a": "b"}})");
  ASSERT_TRUE(secret.ok()) << secret.error().message();
  EXPECT_FALSE(secret->is_for(*HostName::parse("api.example.com")));
  EXPECT_EQ(boost::json::serialize(shown_secret(*secret)),
            R"({"name":"my-key.1","hosts":[],"metadata":{"a":"b"},"version":1})");
  for (const char* name : {"", "-a", ".a", "a/b", "a b", "a}"})
    EXPECT_FALSE(parse(name, R"({"value": "v", "hosts": []})").ok()) << name;
  EXPECT_FALSE(parse("A", R"({"value": "v", "hosts": [], "paths": ["/a"]})").ok());
  EXPECT_FALSE(parse("A", R"({"value": "v", "hosts": [], "metadata": {"a": 1}})").ok());
}

TEST(SecretUse, PlaceholdersAreLongAndNeverTheSame) {
  std::string first = draw_placeholder();
  EXPECT_TRUE(first.starts_with(kPlaceholderPrefix));
  EXPECT_EQ(first.size(), kPlaceholderPrefix.size() + 32);
  EXPECT_NE(first, draw_placeholder());
}

TEST(SealedFile, OpensOnlyUnchangedUnderItsLabelAndKey) {
  std::string key(kSealKeyBytes, 'k');
  std::string sealed = seal(key, "label", "text").value();
  EXPECT_EQ(unseal(key, "label", sealed).value(), "text");
  EXPECT_NE(seal(key, "label", "text").value(), sealed);
  EXPECT_FALSE(unseal(key, "other", sealed).ok());
  EXPECT_FALSE(unseal(std::string(kSealKeyBytes, 'x'), "label", sealed).ok());
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(unseal(key, "label", changed).ok()) << i;
  }
  EXPECT_FALSE(unseal(key, "label", "short").ok());
}

TEST_F(SecretStoreTest, KeepsSecretsOfEachTenantAcrossRestarts) {
  SecretStore store = open();
  ASSERT_TRUE(store.put(1, *parse("TOKEN", kWhole), kNow).ok());
  EXPECT_EQ(store.find(2, "TOKEN"), nullptr);
  SecretStore again = open();
  ASSERT_NE(again.find(1, "TOKEN"), nullptr);
  EXPECT_EQ(again.find(1, "TOKEN")->value, "sk-top");
  EXPECT_EQ(again.list(1).size(), 1u);
  EXPECT_EQ(again.list(2).size(), 0u);
  EXPECT_FALSE(again.remove(2, "TOKEN").ok());
  ASSERT_TRUE(again.remove(1, "TOKEN").ok());
  EXPECT_EQ(open().find(1, "TOKEN"), nullptr);
}

TEST_F(SecretStoreTest, CountsTheValuesOfASecret) {
  SecretStore store = open();
  ASSERT_TRUE(store.put(1, *parse("TOKEN", kWhole), kNow).ok());
  WallTime later = kNow + std::chrono::seconds(1);
  ASSERT_TRUE(store.put(1, *parse("TOKEN", kWhole), later).ok());
  for (const SecretStore& each : {store, open()}) {
    SecretHistory history = each.find(1, "TOKEN")->history;
    EXPECT_EQ(history.version, 2u);
    EXPECT_EQ(history.created_at_ms, 1'700'000'000'000);
    EXPECT_EQ(history.updated_at_ms, 1'700'000'001'000);
  }
}

TEST_F(SecretStoreTest, ReadsThoseOfAnOlderAtoll) {
  SecretStore store = open();
  ASSERT_TRUE(store.put(1, *parse("TOKEN", kWhole), kNow).ok());
  std::string key = read_file(file("secrets.key")).value();
  std::string old = seal(key, "atoll secret 1 TOKEN", kWhole).value();
  ASSERT_TRUE(write_private_file(directory_.get(), "1-TOKEN.secret", old).ok());
  SecretStore again = open();
  ASSERT_NE(again.find(1, "TOKEN"), nullptr);
  EXPECT_EQ(again.find(1, "TOKEN")->history.version, 1u);
  EXPECT_EQ(again.find(1, "TOKEN")->history.created_at_ms, 0);
}

TEST_F(SecretStoreTest, NoFileShowsAValueOrLetsOthersRead) {
  SecretStore store = open();
  ASSERT_TRUE(store.put(1, *parse("TOKEN", kWhole), kNow).ok());
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    std::string bytes = read_file(entry.path().string()).value();
    EXPECT_EQ(bytes.find("sk-top"), bytes.npos) << entry.path();
    struct stat status;
    ASSERT_EQ(stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 2u);
}

TEST_F(SecretStoreTest, AFileCannotStandForAnother) {
  SecretStore store = open();
  ASSERT_TRUE(store.put(1, *parse("TOKEN", kWhole), kNow).ok());
  std::filesystem::copy(file("1-TOKEN.secret"), file("2-TOKEN.secret"));
  std::filesystem::copy(file("1-TOKEN.secret"), file("1-OTHER.secret"));
  SecretStore again = open();
  EXPECT_NE(again.find(1, "TOKEN"), nullptr);
  EXPECT_EQ(again.find(2, "TOKEN"), nullptr);
  EXPECT_EQ(again.find(1, "OTHER"), nullptr);
}

TEST_F(SecretStoreTest, ATenantHasSoManyAndNoMore) {
  SecretStore store = open();
  for (size_t i = 0; i < kMaxSecretsOfTenant; ++i)
    ASSERT_TRUE(store.put(1, *parse("S" + std::to_string(i), kWhole), kNow).ok());
  EXPECT_FALSE(store.put(1, *parse("MORE", kWhole), kNow).ok());
  EXPECT_TRUE(store.put(1, *parse("S0", kWhole), kNow).ok());
  EXPECT_TRUE(store.put(2, *parse("MORE", kWhole), kNow).ok());
}

}  // namespace
}  // namespace atl::egress
