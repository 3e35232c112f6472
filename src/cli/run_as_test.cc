#include "cli/run_as.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"

namespace atl::cli {
namespace {

class RunAs : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: it becomes another user";
  }
  static constexpr Identity kOther{12345, 12346};
};

TEST_F(RunAs, IsTheOtherUserForGood) {
  auto text = run_as(kOther, []() -> Result<std::string> {
    if (setresuid(0, 0, 0) == 0) return Error(Code::kDenied, "became root again");
    return std::to_string(getuid()) + ":" + std::to_string(getegid());
  });
  ASSERT_TRUE(text.ok()) << text.error().message();
  EXPECT_EQ(*text, "12345:12346");
  EXPECT_EQ(geteuid(), 0u);
}

TEST_F(RunAs, GivesErrorsWithTheirCode) {
  auto failed = run_as(kOther, [] { return read_file("/etc/shadow"); });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code(), Code::kDenied) << failed.error().message();
}

TEST_F(RunAs, AWorkerThatDiesIsAnError) {
  EXPECT_FALSE(run_as(kOther, []() -> Result<std::string> { _exit(0); }).ok());
}

}  // namespace
}  // namespace atl::cli
