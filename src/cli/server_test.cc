#include "cli/server.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "cli/fixture_test.h"

namespace atl::cli {
namespace {

TEST(Server, ReadsUrls) {
  EXPECT_EQ(parse_url("http://127.0.0.1:4700").value().port, 4700);
  EXPECT_EQ(parse_url("http://example.org/").value().port, 80);
  EXPECT_EQ(parse_url("http://[::1]:9").value().host, "::1");
}

TEST(Server, RefusesUrlsItCannotServe) {
  for (const char* url :
       {"", "127.0.0.1:4700", "https://a:1", "http://", "http://a:0", "http://a:1/v1",
        "http://u@a:1", "http://a:99999", "http://a\r\nX: 1:1", "http://:80"})
    EXPECT_FALSE(parse_url(url).ok()) << url;
}

class LocalServer : public testing::Test {
 protected:
  LocalServer() : places_(Places::beneath(dir_.path())) {
    std::filesystem::create_directories(places_.daemon_state());
    std::filesystem::create_directories(places_.daemon_run());
    write_text(places_.local_key(), "local-key\n");
  }
  TempDir dir_;
  Places places_;
};

TEST_F(LocalServer, IsFoundByItsAddressFileWithTheLocalKey) {
  write_text(places_.address(), "0.0.0.0:4711\n");
  Server server = find_server(places_, {}).value();
  EXPECT_EQ(server.host, "127.0.0.1");
  EXPECT_EQ(server.port, 4711);
  EXPECT_EQ(server.key, "local-key");
}

TEST_F(LocalServer, WithoutAnAddressFileTheRemedyIsNamed) {
  auto server = find_server(places_, {});
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.error().message().find("atoll up"), std::string::npos);
}

TEST_F(LocalServer, TheLocalKeyIsNotSentToAnotherHost) {
  auto other = find_server(places_, {.url = "http://192.0.2.1:4700", .key = ""});
  EXPECT_EQ(other.error().code(), Code::kDenied);
  EXPECT_EQ(find_server(places_, {.url = "http://192.0.2.1:4700", .key = "k"}).value().key, "k");
  EXPECT_EQ(find_server(places_, {.url = "http://127.0.0.1:1", .key = ""}).value().key,
            "local-key");
}

TEST_F(LocalServer, AnAddressFileThatIsNotAnAddressIsRefused) {
  write_text(places_.address(), std::string(4096, 'x'));
  EXPECT_FALSE(find_server(places_, {}).ok());
  write_text(places_.address(), "evil.example:80");
  EXPECT_FALSE(find_server(places_, {}).ok());
}

}  // namespace
}  // namespace atl::cli
