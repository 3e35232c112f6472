#include "store/blob_shares.h"

#include <memory>
#include <optional>

#include <gtest/gtest.h>

#include "store/sha256.h"

namespace atl::store {
namespace {

class BlobSharesTest : public testing::Test {
 protected:
  std::unique_ptr<BlobShares::Claim> claim(TenantId tenant = kLocalTenant, uint64_t limit = 10) {
    return std::make_unique<BlobShares::Claim>(shares_, tenant, limit);
  }
  static std::string reason(BlobShares::Claim& claim, const std::string& name, uint64_t bytes) {
    auto added = claim.add(sha256(name), bytes);
    return added ? "" : std::string(added.error().reason());
  }

  BlobShares shares_;
  TenantId other_ = *TenantId::from_number(7);
};

TEST_F(BlobSharesTest, EndAtTheLimit) {
  auto one = claim();
  EXPECT_EQ(reason(*one, "a", 10), "");
  EXPECT_EQ(reason(*one, "a", 10), "") << "the same counts once";
  EXPECT_EQ(reason(*one, "b", 1), "sealed_share_full");
  EXPECT_EQ(reason(*one, "c", 0), "");
}

TEST_F(BlobSharesTest, CountWhatIsThereOnce) {
  NeededBlobs needed;
  needed.add(sha256("a"), 6);
  needed.add(sha256("a"), 6);
  EXPECT_EQ(needed.bytes, 6u);
  auto one = claim();
  one->set_needed(needed);
  EXPECT_EQ(reason(*one, "a", 6), "");
  EXPECT_EQ(reason(*one, "b", 5), "sealed_share_full");
  EXPECT_EQ(reason(*one, "b", 4), "");
}

TEST_F(BlobSharesTest, AreOfOneTenant) {
  auto one = claim(), another = claim(other_);
  EXPECT_EQ(reason(*one, "a", 10), "");
  EXPECT_EQ(reason(*another, "a", 10), "");
}

TEST_F(BlobSharesTest, CountWhatOthersOfTheTenantArePutting) {
  auto one = claim(), second = claim();
  EXPECT_EQ(reason(*one, "a", 6), "");
  EXPECT_EQ(reason(*second, "b", 5), "sealed_share_full");
  one.reset();
  EXPECT_EQ(reason(*second, "b", 5), "") << "what was given up counts no more";
}

TEST_F(BlobSharesTest, CountWhatGotItsRowSinceTheyWereMade) {
  auto one = claim(), early = claim();
  EXPECT_EQ(reason(*one, "a", 6), "");
  one->settle();
  one.reset();
  EXPECT_EQ(reason(*early, "b", 5), "sealed_share_full") << "it had looked before that row";
  auto late = claim();
  NeededBlobs needed;
  needed.add(sha256("a"), 6);
  late->set_needed(needed);
  EXPECT_EQ(reason(*late, "b", 4), "") << "it finds the row, and counts it once";
}

}  // namespace
}  // namespace atl::store
