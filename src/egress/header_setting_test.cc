#include "egress/header_setting.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include "egress/header_write.h"

namespace atl::egress {
namespace {

constexpr const char* kHead =
    "GET /v1/a HTTP/1.1\r\nHost: api.example.com\r\nauthorization: mine\r\nX-Other: 1\r\n"
    "Authorization: twice\r\n\r\n";

HeaderSetting setting(std::string_view host, std::string name, std::string value) {
  auto made = HeaderSetting::create(host, std::move(name), std::move(value));
  EXPECT_TRUE(made.ok()) << made.error().message();
  return std::move(*made);
}

// What a request to api.example.com becomes.
class HeaderWriteTest : public testing::Test {
 protected:
  Result<std::string> write(std::vector<HeaderSetting> settings, bool is_tls = true,
                            std::string_view path = "/v1/a", std::string_view head = kHead) {
    SwapPlace place{&host_, path, is_tls};
    auto find = [this](const std::string& name) -> const Secret* {
      return name == secret_.name ? &secret_ : nullptr;
    };
    return write_headers(head, place, settings, find);
  }
  void expect_refused(const Result<std::string>& written) {
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().reason(), "secret_not_bound");
    EXPECT_EQ(written.error().message().find("sk-top"), std::string::npos);
  }

  HostName host_ = *HostName::parse("api.example.com");
  Secret secret_{.name = "my-key", .value = "sk-top", .hosts = {}};
};

TEST(HeaderSetting, IsReadStrictly) {
  for (const char* host : {"", "*", "10.0.0.1", "a b", "*.*.example.com"})
    EXPECT_FALSE(HeaderSetting::create(host, "X-A", "v").ok()) << host;
  for (const char* name : {"", "A B", "A:", "host", "Content-Length", "transfer-encoding", "TE",
                           "Connection", "proxy-authorization", "Upgrade", "A\r\nB"})
    EXPECT_FALSE(HeaderSetting::create("example.com", name, "v").ok()) << name;
  for (const char* value : {"a\r\nHost: b", "a\nb", " a", "a ", "${other.X}", "${secrets.}", "${",
                            "${secrets.A", "${secrets.A/B}", "${secrets..A}"})
    EXPECT_FALSE(HeaderSetting::create("example.com", "X-A", value).ok()) << value;
  EXPECT_FALSE(HeaderSetting::create("example.com", "X-A", std::string(4097, 'a')).ok());
  EXPECT_TRUE(HeaderSetting::create("*.example.com", "X-A", "$a {} ${secrets.my-key.1}").ok());
}

TEST(HeaderSetting, IsWrittenAsItWasRead) {
  const char* text = R"({"set_headers":[{"host":"*.example.com","name":"X-A","value":"v"}]})";
  auto read = read_header_settings(boost::json::parse(text).as_object());
  ASSERT_TRUE(read.ok()) << read.error().message();
  boost::json::object again;
  again["set_headers"] = header_settings_json(*read);
  EXPECT_EQ(boost::json::serialize(again), text);
  EXPECT_TRUE((*read)[0].is_for(*HostName::parse("a.b.example.com")));
  EXPECT_FALSE((*read)[0].is_for(*HostName::parse("example.com")));
}

TEST(HeaderSetting, UnknownKeysAndTooManyAreRefused) {
  for (const char* text : {R"({"set_headers": {}})", R"({"set_headers": [1]})",
                           R"({"set_headers": [{"host": "a.b", "name": "X"}]})",
                           R"({"set_headers": [{"host":"a.b","name":"X","value":"v","x":1}]})"})
    EXPECT_FALSE(read_header_settings(boost::json::parse(text).as_object()).ok()) << text;
  boost::json::array many;
  for (size_t i = 0; i < 9; ++i)
    many.push_back({{"host", "a.b"}, {"name", "X"}, {"value", std::string(4000, 'v')}});
  EXPECT_FALSE(read_header_settings({{"set_headers", many}}).ok());
  many.resize(8);
  EXPECT_TRUE(read_header_settings({{"set_headers", many}}).ok());
}

TEST_F(HeaderWriteTest, TakesThePlaceOfEveryFieldOfItsName) {
  auto written = write({setting("api.example.com", "Authorization", "Bearer ${secrets.my-key}")});
  ASSERT_TRUE(written.ok()) << written.error().message();
  EXPECT_EQ(*written,
            "GET /v1/a HTTP/1.1\r\nHost: api.example.com\r\nX-Other: 1\r\n"
            "Authorization: Bearer sk-top\r\n\r\n");
}

TEST_F(HeaderWriteTest, TheMostExactHostCountsAlone) {
  auto written =
      write({setting("*.com", "X-Far", "1"), setting("*.example.com", "X-Near", "1"),
             setting("api.example.com", "X-Own", "1"), setting("api.example.com", "x-own", "2")});
  ASSERT_TRUE(written.ok());
  EXPECT_NE(written->find("\r\nx-own: 2\r\n"), std::string::npos);
  for (const char* other : {"X-Far", "X-Near", "X-Own: 1"})
    EXPECT_EQ(written->find(other), std::string::npos) << other;
  written = write({setting("*.example.com", "X-Near", "1"), setting("*.com", "X-Far", "1")});
  EXPECT_NE(written->find("X-Near"), std::string::npos);
  EXPECT_EQ(written->find("X-Far"), std::string::npos);
}

TEST_F(HeaderWriteTest, OtherHostsAreLetBe) {
  auto written = write({setting("www.example.com", "Authorization", "${secrets.my-key}")});
  EXPECT_EQ(written.value(), kHead);
}

TEST_F(HeaderWriteTest, ASecretGoesOnlyWhereItIsBound) {
  HeaderSetting wanted = setting("api.example.com", "Authorization", "Bearer ${secrets.my-key}");
  expect_refused(write({wanted}, false));
  expect_refused(write({setting("api.example.com", "X-A", "${secrets.other}")}));
  secret_.hosts = {*HostName::parse("www.example.com")};
  expect_refused(write({wanted}));
  secret_.hosts = {host_};
  EXPECT_TRUE(write({wanted}).ok());
  secret_.paths = {*PathPattern::parse("/v1/**")};
  EXPECT_TRUE(write({wanted}).ok());
  expect_refused(write({wanted}, true, "/v2/a"));
  secret_.header = HeaderForm{.name = "authorization", .before = "Bearer ", .after = ""};
  EXPECT_TRUE(write({wanted}).ok());
  expect_refused(write({setting("api.example.com", "X-A", "Bearer ${secrets.my-key}")}));
  expect_refused(write({setting("api.example.com", "Authorization", "${secrets.my-key}")}));
}

TEST_F(HeaderWriteTest, PlainTextGoesUnencryptedToo) {
  auto written = write({setting("api.example.com", "X-A", "v")}, false);
  ASSERT_TRUE(written.ok());
  EXPECT_NE(written->find("X-A: v\r\n\r\n"), std::string::npos);
}

TEST_F(HeaderWriteTest, AProgramCannotHaveASetFieldTakenOutOnTheWay) {
  HeaderSetting set = setting("api.example.com", "X-Tenant", "acme");
  for (const char* line : {"Connection: X-Tenant\r\n", "connection: keep-alive ,x-tenant\r\n",
                           "Connection: close\r\nConnection: a, X-TENANT\r\n"}) {
    std::string head = std::string("GET / HTTP/1.1\r\nHost: api.example.com\r\n") + line + "\r\n";
    auto written = write({set}, true, "/", head);
    ASSERT_FALSE(written.ok()) << line;
    EXPECT_EQ(written.error().reason(), "bad_http");
  }
  std::string head =
      "GET / HTTP/1.1\r\nHost: api.example.com\r\nConnection: keep-alive, X-Tenan\r\n\r\n";
  EXPECT_TRUE(write({set}, true, "/", head).ok());
}

TEST_F(HeaderWriteTest, ManyLargeSecretsAreNotWrittenOut) {
  secret_.value = std::string(16 * 1024, 's');
  std::string value;
  for (int i = 0; i < 7; ++i) value += "${secrets.my-key}";
  EXPECT_TRUE(write({setting("api.example.com", "X-A", value)}).ok());
  auto written = write({setting("api.example.com", "X-A", value + "${secrets.my-key}")});
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().reason(), "bad_http");
  auto two =
      write({setting("api.example.com", "X-A", value), setting("api.example.com", "X-B", value)});
  ASSERT_FALSE(two.ok());
  EXPECT_EQ(two.error().reason(), "bad_http");
}

}  // namespace
}  // namespace atl::egress
