#include "egress/upstream.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"

namespace atl::egress {
namespace {

class UpstreamTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs files of root";
    char pattern[] = "/tmp/atoll-upstream-XXXXXX";
    path_ = mkdtemp(pattern);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  std::string write(const std::string& name, const std::string& text, unsigned mode = 0644) {
    std::string path = path_ + "/" + name;
    EXPECT_TRUE(replace_file(path, text, mode).ok());
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  static std::string why_not(const std::string& path) {
    auto read = read_upstream(path);
    return read ? "read" : read.error().message();
  }
  std::string path_;
};

TEST_F(UpstreamTest, IsReadWithItsCredentials) {
  std::string secret = write("credentials", "user:pass word\n", 0640);
  auto read = read_upstream(
      write("upstream", "proxy = \"Proxy.example:3128\"\ncredentials = \"" + secret + "\"\n"));
  ASSERT_TRUE(read.ok() && *read) << why_not(path_ + "/upstream");
  EXPECT_EQ(authority_text((*read)->proxy, (*read)->port), "proxy.example:3128");
  EXPECT_EQ((*read)->authorization, "Basic dXNlcjpwYXNzIHdvcmQ=");
  auto none = read_upstream(path_ + "/missing");
  EXPECT_TRUE(none.ok() && !*none);
}

TEST_F(UpstreamTest, RefusesWhatOthersCouldHaveWrittenOrRead) {
  EXPECT_NE(why_not(write("a", "proxy = \"a.b:1\"\n", 0666)).find("permissions"),
            std::string::npos);
  std::string secret = write("open", "user:password\n", 0644);
  EXPECT_NE(why_not(write("b", "proxy = \"a.b:1\"\ncredentials = \"" + secret + "\"\n"))
                .find("permissions"),
            std::string::npos);
  EXPECT_NE(why_not(write("c", "proxy = \"a.b\"\n")).find("name:port"), std::string::npos);
  EXPECT_NE(why_not(write("d", "prox = \"a.b:1\"\n")), "read");
  std::string two = write("two", "user:password\nProxy-X: y\n", 0600);
  EXPECT_NE(
      why_not(write("e", "proxy = \"a.b:1\"\ncredentials = \"" + two + "\"\n")).find("one line"),
      std::string::npos);
}

TEST_F(UpstreamTest, IsThatOfTheEnvironmentWhereTheFileSaysSo) {
  std::string path = write("upstream", "proxy = \"environment\"\n");
  unsetenv("https_proxy");
  unsetenv("HTTPS_PROXY");
  setenv("http_proxy", "http://user:p%40ss@proxy.example:3128/", 1);
  auto read = read_upstream(path);
  ASSERT_TRUE(read.ok() && *read) << why_not(path);
  EXPECT_EQ(authority_text((*read)->proxy, (*read)->port), "proxy.example:3128");
  EXPECT_EQ((*read)->authorization, basic_authorization("user:p@ss"));
  setenv("https_proxy", "10.0.0.1:8080", 1);
  read = read_upstream(path);
  EXPECT_EQ(authority_text((*read)->proxy, (*read)->port), "10.0.0.1:8080");
  setenv("https_proxy", "http://secret@:3128", 1);
  EXPECT_EQ(why_not(path), "the proxy of the environment is not http://host:port");
  unsetenv("https_proxy");
  unsetenv("http_proxy");
  read = read_upstream(path);
  EXPECT_TRUE(read.ok() && !*read);
  EXPECT_NE(why_not(write("both", "proxy = \"environment\"\ncredentials = \"/a\"\n")), "read");
}

}  // namespace
}  // namespace atl::egress
