#include "base/result.h"

#include <memory>

#include <gtest/gtest.h>

namespace atl {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return Error(Code::kInvalid, "odd number");
  return number / 2;
}

Result<int> quarter(int number) {
  ATOLL_TRY(int once, half(number));
  ATOLL_TRY(int twice, half(once));
  return twice;
}

Result<void> require_even(int number) {
  ATOLL_TRY_VOID(half(number));
  return {};
}

TEST(Result, HoldsAValueOrAnError) {
  Result<int> good = half(4);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good, 2);
  Result<int> bad = half(3);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code(), Code::kInvalid);
  EXPECT_EQ(bad.error().message(), "odd number");
}

TEST(Result, TryReturnsTheFirstError) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_FALSE(quarter(6).ok());
  EXPECT_FALSE(quarter(5).ok());
}

TEST(Result, TryVoidPassesErrorsAndSuccess) {
  EXPECT_TRUE(require_even(2).ok());
  ASSERT_FALSE(require_even(1).ok());
  EXPECT_EQ(require_even(1).error().message(), "odd number");
}

TEST(Result, MovesWhatCannotBeCopied) {
  auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(7); };
  auto use = [&]() -> Result<int> {
    ATOLL_TRY(std::unique_ptr<int> value, make());
    return *value;
  };
  EXPECT_EQ(*use(), 7);
}

TEST(Result, ArrowReachesIntoTheValue) {
  Result<std::string> text = std::string("abc");
  EXPECT_EQ(text->size(), 3u);
}

TEST(ResultDeathTest, WrongSideAborts) {
  Result<int> bad = half(3);
  Result<int> good = half(4);
  Result<void> failed = Error(Code::kTimeout, "late");
  EXPECT_DEATH(static_cast<void>(bad.value()), "check failed");
  EXPECT_DEATH(static_cast<void>(good.error()), "check failed");
  EXPECT_DEATH(failed.value(), "check failed");
}

TEST(Error, ContextGoesInFront) {
  Error error = Error(Code::kDenied, "permission denied").with_context("mount overlay");
  EXPECT_EQ(std::move(error).with_context("launch s3k").message(),
            "launch s3k: mount overlay: permission denied");
}

TEST(Error, SystemErrorKeepsErrnoAndSaysWhatWasAttempted) {
  errno = ENOENT;
  Error error = Error::system("open /x");
  EXPECT_EQ(error.system_errno(), ENOENT);
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_EQ(error.message(), "open /x: No such file or directory");
}

TEST(Error, ErrnoGivesTheCanonicalCode) {
  auto code = [](int number) { return Error::from_errno("x", number).code(); };
  EXPECT_EQ(code(EPERM), Code::kDenied);
  EXPECT_EQ(code(EACCES), Code::kDenied);
  EXPECT_EQ(code(ENOSPC), Code::kExhausted);
  EXPECT_EQ(code(EDQUOT), Code::kExhausted);
  EXPECT_EQ(code(ENOMEM), Code::kExhausted);
  EXPECT_EQ(code(ENOSYS), Code::kUnsupported);
  EXPECT_EQ(code(ETIMEDOUT), Code::kTimeout);
  EXPECT_EQ(code(EIO), Code::kSystem);
}

TEST(Error, EveryCodeHasItsOwnName) {
  EXPECT_EQ(code_name(Code::kInvalid), "invalid");
  EXPECT_EQ(code_name(Code::kNotFound), "not_found");
  EXPECT_EQ(code_name(Code::kSystem), "system");
  for (int a = 0; a <= static_cast<int>(Code::kSystem); ++a) {
    for (int b = 0; b < a; ++b) {
      EXPECT_NE(code_name(static_cast<Code>(a)), code_name(static_cast<Code>(b)));
    }
  }
}

}  // namespace
}  // namespace atl
