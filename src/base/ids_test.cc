#include "base/ids.h"

#include <set>

#include <gtest/gtest.h>

namespace atl {
namespace {

constexpr std::string_view kGood = "sabcdefghijklmnop234";

TEST(SandboxId, DrawnIdParsesToItself) {
  SandboxId id = SandboxId::draw();
  auto again = SandboxId::parse(id.view());
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(*again, id);
  EXPECT_EQ(id.string().size(), SandboxId::kLength);
  EXPECT_EQ(id.view()[0], 's');
}

TEST(SandboxId, DrawnIdsDiffer) {
  std::set<std::string> drawn;
  for (int i = 0; i < 10'000; ++i) drawn.insert(SandboxId::draw().string());
  EXPECT_EQ(drawn.size(), 10'000u);
}

TEST(SandboxId, RefusesWhateverCouldMeanSomethingInAPath) {
  ASSERT_TRUE(SandboxId::parse(kGood).has_value());
  for (char bad :
       {'/', '.', '-', '_', '%', ' ', 'A', 'Z', '0', '1', '8', '9', '\0', '\n', '\xff'}) {
    for (size_t position : {size_t{1}, kGood.size() / 2, kGood.size() - 1}) {
      std::string text(kGood);
      text[position] = bad;
      EXPECT_FALSE(SandboxId::parse(text).has_value()) << text;
    }
  }
}

TEST(SandboxId, RefusesOtherLengthsAndPrefixes) {
  EXPECT_FALSE(SandboxId::parse("").has_value());
  EXPECT_FALSE(SandboxId::parse("s").has_value());
  EXPECT_FALSE(SandboxId::parse(kGood.substr(0, 19)).has_value());
  EXPECT_FALSE(SandboxId::parse(std::string(kGood) + "a").has_value());
  EXPECT_FALSE(SandboxId::parse("eabcdefghijklmnop234").has_value());
}

TEST(ExecId, CountsFromOneToItsMaximum) {
  EXPECT_FALSE(ExecId::from_number(0).has_value());
  EXPECT_EQ(ExecId::from_number(1)->string(), "e1");
  EXPECT_EQ(ExecId::from_number(ExecId::kMax)->string(), "e1000000000");
  EXPECT_FALSE(ExecId::from_number(ExecId::kMax + 1).has_value());
}

TEST(ExecId, EachNumberHasOneSpelling) {
  EXPECT_EQ(ExecId::parse("e42")->number(), 42u);
  EXPECT_EQ(ExecId::parse("e1000000000")->number(), ExecId::kMax);
  for (std::string_view bad :
       {"", "e", "42", "e0", "e042", "e-1", "e+1", "e 1", "e1 ", "E1", "e1x", "e0x1", "e1000000001",
        "e4294967297", "e99999999999", "s1", "../e1"}) {
    EXPECT_FALSE(ExecId::parse(bad).has_value()) << bad;
  }
}

TEST(Digest, TextAndBytesAreTheSameThing) {
  std::string text(64, '0');
  text.replace(0, 4, "1fa0");
  auto digest = Digest::parse(text);
  ASSERT_TRUE(digest.has_value());
  EXPECT_EQ(digest->bytes()[0], 0x1f);
  EXPECT_EQ(digest->bytes()[1], 0xa0);
  EXPECT_EQ(digest->string(), text);
  EXPECT_EQ(Digest::from_bytes(digest->bytes()), *digest);
}

TEST(Digest, RefusesOtherLengthsAndDigits) {
  std::string good(64, 'a');
  ASSERT_TRUE(Digest::parse(good).has_value());
  EXPECT_FALSE(Digest::parse(good.substr(1)).has_value());
  EXPECT_FALSE(Digest::parse(good + "a").has_value());
  for (char bad : {'A', 'g', '/', '.', ' ', '\0'}) {
    for (size_t position : {32, 33}) {
      std::string text = good;
      text[position] = bad;
      EXPECT_FALSE(Digest::parse(text).has_value()) << text;
    }
  }
}

TEST(Random, TextHasTheLengthAndOnlySafeCharacters) {
  std::string text = random_text(5000);
  EXPECT_EQ(text.size(), 5000u);
  EXPECT_EQ(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz234567"), std::string::npos);
  EXPECT_EQ(std::set<char>(text.begin(), text.end()).size(), 32u) << "every character is drawn";
  EXPECT_EQ(random_text(0), "");
}

TEST(Random, FillsMoreThanOneCallOfTheKernelGives) {
  std::vector<unsigned char> bytes(1'000'000, 0);
  fill_random(bytes);
  std::span<unsigned char> tail = std::span(bytes).last(64);
  EXPECT_GT(std::set<unsigned char>(tail.begin(), tail.end()).size(), 16u);
}

}  // namespace
}  // namespace atl
