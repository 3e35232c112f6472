#include "api/e2b/token_index.h"

#include <gtest/gtest.h>

#include "sandbox/test_bed.h"

namespace atl::api::e2b {
namespace {

struct IndexTest : ::testing::Test {
  std::optional<SandboxId> find(std::string_view token) {
    auto found = index.search(token);
    return found ? *found : std::nullopt;
  }
  FileLink link_of(SandboxId id) {
    FileLink link{"a", "read", "", "", ""};
    link.signature = signature_of(link, tokens.access_token(id));
    return link;
  }

  sandbox::TestBed bed;
  sandbox::PortTokens tokens = sandbox::PortTokens::open(bed.directory() + "/port.key").value();
  TokenIndex index{bed.sandboxes(), tokens, {.at_once = 50, .per_second = 10}};
};
using TokenIndexTest = IndexTest;

TEST_F(TokenIndexTest, FindsWhoseTokenItIsWhileTheSandboxLives) {
  auto first = bed.create();
  std::string token = tokens.access_token(first->id());
  EXPECT_EQ(index.recall(token), std::nullopt) << "before anybody has searched";
  EXPECT_EQ(find(token), first->id());
  EXPECT_EQ(index.recall(token), first->id());
  auto second = bed.create();
  EXPECT_EQ(find(tokens.access_token(second->id())), second->id());
  EXPECT_EQ(find(tokens.traffic_token(second->id())), std::nullopt);
  EXPECT_EQ(find(""), std::nullopt);
  EXPECT_EQ(index.size(), 2u);
  ASSERT_TRUE(bed.run(bed.sandboxes().remove(store::kLocalTenant, first->id())).ok());
  EXPECT_EQ(index.recall(token), std::nullopt);
  EXPECT_EQ(find("x"), std::nullopt);
  EXPECT_EQ(index.size(), 1u) << "what is gone is forgotten";
  EXPECT_EQ(find(token), std::nullopt);
}

TEST_F(TokenIndexTest, FindsWhoSignedALinkAndRemembersIt) {
  bed.create();
  auto second = bed.create();
  FileLink link = link_of(second->id());
  EXPECT_EQ(index.recall(link), std::nullopt);
  auto found = index.search(link);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, second->id());
  EXPECT_EQ(index.recall(link), second->id());
  link.path = "b";
  found = index.search(link);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, std::nullopt);
}

TEST_F(TokenIndexTest, SearchesCostNoMoreThanTheirBudgetHoweverManySandboxesThereAre) {
  auto first = bed.create();
  for (int i = 0; i < 4; ++i) bed.create();
  FileLink right = link_of(first->id());
  ASSERT_TRUE(index.search(right).ok());
  FileLink wrong = right;
  wrong.signature = "v1_x";
  int searches = 1;
  while (index.search(wrong).ok()) ASSERT_LE(++searches, 10);
  EXPECT_EQ(searches, 10) << "of five tokens each";
  EXPECT_EQ(index.search("x").error().reason(), "rate_limited");
  EXPECT_EQ(index.recall(right), first->id()) << "what was right before costs nothing";
  bed.clock.advance(std::chrono::seconds(1));
  EXPECT_TRUE(index.search(wrong).ok());
  EXPECT_TRUE(index.search(wrong).ok());
  EXPECT_FALSE(index.search(wrong).ok());
}

}  // namespace
}  // namespace atl::api::e2b
