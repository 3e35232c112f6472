#include "api/e2b/token_index.h"

#include <gtest/gtest.h>

#include "api/e2b/signature.h"
#include "sandbox/test_bed.h"

namespace atl::api::e2b {
namespace {

TEST(TokenIndex, FindsWhoseTokenItIsWhileTheSandboxLives) {
  sandbox::TestBed bed;
  auto tokens = sandbox::PortTokens::open(bed.directory() + "/port.key");
  ASSERT_TRUE(tokens.ok());
  TokenIndex index(bed.sandboxes(), *tokens);
  auto first = bed.create();
  std::string token = tokens->access_token(first->id());
  EXPECT_EQ(index.find(token), first->id());
  auto second = bed.create();
  EXPECT_EQ(index.find(tokens->access_token(second->id())), second->id());
  EXPECT_EQ(index.find(tokens->traffic_token(second->id())), std::nullopt);
  EXPECT_EQ(index.find(""), std::nullopt);
  EXPECT_EQ(index.size(), 2u);
  ASSERT_TRUE(bed.run(bed.sandboxes().remove(store::kLocalTenant, first->id())).ok());
  EXPECT_EQ(index.find("x"), std::nullopt);
  EXPECT_EQ(index.size(), 1u) << "what is gone is forgotten";
  EXPECT_EQ(index.find(token), std::nullopt);
}

TEST(TokenIndex, FindsWhoSignedALink) {
  sandbox::TestBed bed;
  auto tokens = sandbox::PortTokens::open(bed.directory() + "/port.key");
  ASSERT_TRUE(tokens.ok());
  TokenIndex index(bed.sandboxes(), *tokens);
  bed.create();
  auto second = bed.create();
  std::string token = tokens->access_token(second->id());
  std::string signature = signature_of({"a", "read", "", token, ""});
  http::Request request;
  request.method = http::Method::kGet;
  request.path = "/files";
  std::string escaped;
  for (char letter : signature)
    escaped += letter == '+' ? std::string("%2B") : std::string(1, letter);
  request.query = "path=a&signature=" + escaped;
  EXPECT_EQ(index.find_signed(request), second->id());
  request.query = "path=b&signature=" + escaped;
  EXPECT_EQ(index.find_signed(request), std::nullopt);
}

}  // namespace
}  // namespace atl::api::e2b
