#include "egress/spending.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "egress/policy_json.h"
#include "egress/purse.h"

namespace atl::egress {
namespace {

constexpr const char* kPolicy =
    R"({"rules":[{"allow":"a.b","budget":{"bytes_out":100,"connections":2}},{"allow":"c.d"}],
        "budget":{"bytes_out":150,"bytes_in":1000,"requests_per_second":3}})";

class SpendingTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/atoll-spending-XXXXXX";
    path_ = mkdtemp(pattern);
    directory_ = *open_file(path_, O_RDONLY | O_DIRECTORY);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  static Policy policy(std::string_view json) { return *parse_policy_json(json); }
  Spending open(std::string_view json) {
    auto opened = Spending::open(directory_.get(), id_, policy(json));
    return std::move(*opened);
  }
  static std::string whose(const Error& error) { return error.reason() + " of " + error.field(); }

  std::string path_;
  Fd directory_;
  SandboxId id_ = SandboxId::draw();
  FakeClock clock_;
};

TEST_F(SpendingTest, WithoutABudgetNothingIsCounted) {
  Spending spending = open(R"({"allow":["a.b"]})");
  EXPECT_EQ(spending.left(0, Flow::kOut), UINT64_MAX);
  spending.spend(0, Flow::kOut, 1000);
  EXPECT_TRUE(spending.begin_connection(0).ok());
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST_F(SpendingTest, TheSmallerBudgetBinds) {
  Spending spending = open(kPolicy);
  EXPECT_EQ(spending.left(0, Flow::kOut), 100u);
  EXPECT_EQ(spending.left(1, Flow::kOut), 150u);
  spending.spend(1, Flow::kOut, 80);
  EXPECT_EQ(spending.left(0, Flow::kOut), 70u);
  EXPECT_EQ(whose(spending.overdraft(0, Flow::kOut)), "budget_bytes_out of budget");
  spending.spend(0, Flow::kOut, 70);
  EXPECT_EQ(spending.left(0, Flow::kOut), 0u);
  EXPECT_EQ(spending.left(1, Flow::kIn), 1000u);
}

TEST_F(SpendingTest, ConnectionsAreCountedInAll) {
  Spending spending = open(kPolicy);
  EXPECT_TRUE(spending.begin_connection(0).ok());
  EXPECT_TRUE(spending.begin_connection(0).ok());
  auto third = spending.begin_connection(0);
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(whose(third.error()), "budget_connections of rules[0].budget");
  EXPECT_TRUE(spending.begin_connection(1).ok());
}

TEST_F(SpendingTest, RequestsComeBackWithTime) {
  Spending spending = open(kPolicy);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(spending.take_requests(1, 1, clock_.steady_now()).ok()) << i;
  auto fourth = spending.take_requests(0, 1, clock_.steady_now());
  ASSERT_FALSE(fourth.ok());
  EXPECT_EQ(whose(fourth.error()), "budget_requests of budget");
  clock_.advance(std::chrono::milliseconds(400));
  EXPECT_TRUE(spending.take_requests(1, 1, clock_.steady_now()).ok());
  EXPECT_FALSE(spending.take_requests(1, 1, clock_.steady_now()).ok());
  clock_.advance(std::chrono::milliseconds(60'000));
  EXPECT_FALSE(spending.take_requests(1, 4, clock_.steady_now()).ok());
  EXPECT_TRUE(spending.take_requests(1, 3, clock_.steady_now()).ok());
}

TEST_F(SpendingTest, OutlivesTheProcessAndAChangeOfThePolicy) {
  {
    Spending spending = open(kPolicy);
    spending.spend(0, Flow::kOut, 60);
    (void)spending.begin_connection(0);
  }
  Spending spending = open(kPolicy);
  EXPECT_EQ(spending.left(0, Flow::kOut), 40u);
  // The rule has moved and may use more; what it has used stays.
  ASSERT_TRUE(spending
                  .change(policy(R"({"rules":[{"deny":"x.y"},
                      {"allow":"a.b","budget":{"bytes_out":1000}}]})"))
                  .ok());
  EXPECT_EQ(spending.left(1, Flow::kOut), 940u);
  EXPECT_EQ(spending.left(0, Flow::kOut), UINT64_MAX);
  ASSERT_TRUE(spending.change(policy(R"({"budget":{"bytes_out":100}})")).ok());
  EXPECT_EQ(spending.left(0, Flow::kOut), 40u);
  EXPECT_TRUE(Spending::remove(directory_.get(), id_).ok());
  EXPECT_TRUE(Spending::remove(directory_.get(), id_).ok());
  EXPECT_EQ(open(kPolicy).left(0, Flow::kOut), 100u);
}

TEST_F(SpendingTest, APurseEndsAStreamOnlyWhenBytesAreThere) {
  Spending spending = open(kPolicy);
  Purse purse(spending);
  purse.set_rule(0);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  Fd ours(ends[0]), theirs(ends[1]);
  EXPECT_EQ(*purse.share(ours.get(), Flow::kOut, 30), 30u);
  EXPECT_EQ(*purse.share(ours.get(), Flow::kOut, 1000), 100u);
  EXPECT_FALSE(purse.spend_piece(Flow::kOut, 101).ok());
  EXPECT_TRUE(purse.spend_piece(Flow::kOut, 100).ok());
  ASSERT_EQ(write(theirs.get(), "x", 1), 1);
  EXPECT_FALSE(purse.share(ours.get(), Flow::kOut, 30).ok());
  char byte;
  ASSERT_EQ(read(ours.get(), &byte, 1), 1);
  theirs.reset();
  EXPECT_EQ(*purse.share(ours.get(), Flow::kOut, 30), 1u);
}

TEST_F(SpendingTest, APurseHasPaidForTheFirstRequest) {
  Spending spending = open(R"({"rules":[{"allow":"a.b","budget":{"requests_per_second":2}}]})");
  Purse purse(spending);
  EXPECT_TRUE(purse.begin().ok());
  EXPECT_TRUE(purse.count_requests(1).ok());
  EXPECT_TRUE(purse.count_requests(2).ok());
  EXPECT_TRUE(purse.count_requests(2).ok());
  EXPECT_FALSE(purse.count_requests(30).ok());
}

}  // namespace
}  // namespace atl::egress
