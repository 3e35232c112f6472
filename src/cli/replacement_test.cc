#include "cli/replacement.h"

#include <gtest/gtest.h>

namespace atl::cli {
namespace {

TEST(Replacement, RoundTrip) {
  using Outcome = Replacement::Outcome;
  for (Outcome outcome :
       {Outcome::kDone, Outcome::kRefused, Outcome::kWentBack, Outcome::kNotReady}) {
    Replacement made{.outcome = outcome,
                     .failure = "a \"reason\"",
                     .programs = {{"atolld", "0.1.0", "0.2.0", 12}},
                     .unavailable = std::chrono::milliseconds(34)};
    auto decoded = decode_replacement(encode(made));
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(decoded->outcome, outcome);
    EXPECT_EQ(decoded->failure, made.failure);
    EXPECT_EQ(decoded->unavailable, made.unavailable);
    ASSERT_EQ(decoded->programs.size(), 1u);
    EXPECT_EQ(decoded->programs[0].before, "0.1.0");
    EXPECT_EQ(decoded->programs[0].after, "0.2.0");
    EXPECT_EQ(decoded->programs[0].pid, 12);
  }
}

TEST(Replacement, RefusesWhatIsNone) {
  for (const char* text : {"", "{}", "[]", R"({"outcome":"fine","programs":[]})"})
    EXPECT_FALSE(decode_replacement(text).ok()) << text;
}

}  // namespace
}  // namespace atl::cli
