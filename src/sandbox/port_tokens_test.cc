#include "sandbox/port_tokens.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "store/test_directory.h"

namespace atl::sandbox {
namespace {

using std::chrono::seconds;

const WallTime kNow{seconds(1'800'000'000)};

class PortToken : public testing::Test {
 protected:
  PortTokens open() { return PortTokens::open(directory_.path() + "/port.key").value(); }

  store::TestDirectory directory_;
  PortGrant grant_{store::kLocalTenant, SandboxId::draw(), 8000};
};

TEST_F(PortToken, OpensOnePortOfOneSandboxUntilItExpires) {
  PortTokens tokens = open();
  std::string token = tokens.sign(grant_, kNow + seconds(10));
  EXPECT_EQ(tokens.check(token, grant_.sandbox, 8000, kNow), store::kLocalTenant);
  EXPECT_FALSE(tokens.check(token, grant_.sandbox, 8001, kNow));
  EXPECT_FALSE(tokens.check(token, SandboxId::draw(), 8000, kNow));
  EXPECT_FALSE(tokens.check(token, grant_.sandbox, 8000, kNow + seconds(10)));
}

TEST_F(PortToken, OfClientsOfE2bAreOneForEachSandboxAndPurpose) {
  PortTokens tokens = open();
  SandboxId sandbox = grant_.sandbox, other = SandboxId::draw();
  std::string access = tokens.access_token(sandbox), traffic = tokens.traffic_token(sandbox);
  EXPECT_NE(access, traffic);
  EXPECT_TRUE(tokens.is_access_token(access, sandbox));
  EXPECT_TRUE(tokens.is_traffic_token(traffic, sandbox));
  EXPECT_FALSE(tokens.is_access_token(traffic, sandbox));
  EXPECT_FALSE(tokens.is_traffic_token(access, sandbox));
  EXPECT_FALSE(tokens.is_access_token(access, other));
  EXPECT_FALSE(tokens.is_access_token("", sandbox));
  EXPECT_FALSE(tokens.is_access_token(access.substr(1), sandbox));
  EXPECT_EQ(open().access_token(sandbox), access) << "after a restart";
}

TEST_F(PortToken, CannotBeAltered) {
  PortTokens tokens = open();
  std::string token = tokens.sign(grant_, kNow + seconds(10));
  for (size_t i = 0; i < token.size(); ++i) {
    std::string other = token;
    other[i] = other[i] == '2' ? '3' : '2';
    EXPECT_FALSE(tokens.check(other, grant_.sandbox, 8000, kNow)) << other;
    EXPECT_FALSE(tokens.check(token.substr(0, i), grant_.sandbox, 8000, kNow));
  }
  EXPECT_FALSE(tokens.check(token + "0", grant_.sandbox, 8000, kNow));
  EXPECT_FALSE(tokens.check(std::string(100000, '1'), grant_.sandbox, 8000, kNow));
}

TEST_F(PortToken, SurvivesARestartAndNotALostKey) {
  std::string token = open().sign(grant_, kNow + seconds(10));
  EXPECT_TRUE(open().check(token, grant_.sandbox, 8000, kNow));
  std::filesystem::remove(directory_.path() + "/port.key");
  EXPECT_FALSE(open().check(token, grant_.sandbox, 8000, kNow));
}

TEST_F(PortToken, IsNotSignedWithAKeyThatIsCutShort) {
  open();
  std::filesystem::resize_file(directory_.path() + "/port.key", 3);
  EXPECT_FALSE(PortTokens::open(directory_.path() + "/port.key").ok());
}

}  // namespace
}  // namespace atl::sandbox
