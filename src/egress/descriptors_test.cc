#include "egress/descriptors.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace atl::egress {
namespace {

constexpr uint64_t kGreedy = 1, kModest = 2;

// Until it is refused.
std::vector<std::unique_ptr<Descriptors::Share>> take_all(Descriptors& descriptors,
                                                          uint64_t tenant) {
  std::vector<std::unique_ptr<Descriptors::Share>> taken;
  while (true) {
    auto share = std::make_unique<Descriptors::Share>();
    if (!share->grow(descriptors, tenant, Descriptors::kOfConnection)) return taken;
    taken.push_back(std::move(share));
  }
}

TEST(Descriptors, ATenantLeavesAsMuchAsItTakes) {
  for (size_t limit : {256, 1100, 20000}) {
    Descriptors descriptors(limit);
    auto greedy = take_all(descriptors, kGreedy);
    EXPECT_GT(greedy.size(), limit / 8) << limit;
    EXPECT_LT(descriptors.held(), limit / 2) << limit;
    auto modest = take_all(descriptors, kModest);
    EXPECT_GT(modest.size(), limit / 16) << limit;
    EXPECT_EQ(descriptors.refused(), 2u);
    greedy.clear();
    EXPECT_EQ(descriptors.held(), modest.size() * Descriptors::kOfConnection);
    modest.clear();
    EXPECT_EQ(descriptors.held(), 0u);
  }
}

TEST(Descriptors, APipeIsPaidForWhileItIsHeld) {
  Descriptors descriptors(256);
  Descriptors::Share share;
  EXPECT_FALSE(share.grow(Descriptors::kOfPipe));  // it is no connection yet
  ASSERT_TRUE(share.grow(descriptors, kGreedy, Descriptors::kOfConnection));
  ASSERT_TRUE(share.grow(Descriptors::kOfPipe));
  EXPECT_EQ(descriptors.held(), 4u);
  share.shrink(Descriptors::kOfPipe);
  EXPECT_EQ(descriptors.held(), 2u);
}

TEST(Descriptors, ConnectionsSandboxesAndControlHaveTheirOwn) {
  Descriptors descriptors(256);
  EXPECT_TRUE(descriptors.is_for_connections(100));
  EXPECT_FALSE(descriptors.is_for_connections(200));
  EXPECT_TRUE(descriptors.is_for_sandboxes(200));
  EXPECT_FALSE(descriptors.is_for_sandboxes(230));
  EXPECT_TRUE(descriptors.has_room_beside(0));
  EXPECT_FALSE(descriptors.has_room_beside(descriptors.most_sandboxes()));
  // All of them, and a control that can still be heard.
  EXPECT_LT(descriptors.most_sandboxes() * Descriptors::kOfSandbox, 200u);
  descriptors.set_sandboxes(descriptors.most_sandboxes());
  EXPECT_TRUE(take_all(descriptors, kGreedy).empty());
}

TEST(Descriptors, ShortIsWhoHasHalfOfItsShare) {
  Descriptors descriptors(1100);
  EXPECT_FALSE(descriptors.is_short_of(kGreedy));
  auto taken = take_all(descriptors, kGreedy);
  EXPECT_TRUE(descriptors.is_short_of(kGreedy));
  EXPECT_FALSE(descriptors.is_short_of(kModest));
  taken.resize(taken.size() / 3);
  EXPECT_FALSE(descriptors.is_short_of(kGreedy));
}

}  // namespace
}  // namespace atl::egress
