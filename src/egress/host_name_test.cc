#include "egress/host_name.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

#include "egress/policy.h"

namespace atl::egress {
namespace {

bool is_name(std::string_view text) { return HostName::parse(text).has_value(); }

TEST(HostName, HasOneForm) {
  EXPECT_EQ(HostName::parse("PyPI.org")->view(), "pypi.org");
  EXPECT_EQ(HostName::parse("xn--BCHER-kva.example")->view(), "xn--bcher-kva.example");
  EXPECT_EQ(HostName::parse("a")->view(), "a");
  EXPECT_EQ(HostName::parse("1.a")->view(), "1.a");
}

TEST(HostName, RefusesWhatTwoReadersCouldReadInTwoWays) {
  using namespace std::string_view_literals;
  for (std::string_view text :
       {""sv,          "."sv,      "a."sv,      ".a"sv,     "a..b"sv,       "a b"sv,
        "a\0.b"sv,     "a\r\n"sv,  "a_b.c"sv,   "-a.b"sv,   "a-.b"sv,       "a@b"sv,
        "a:443"sv,     "a%00.b"sv, "a/b"sv,     "[::1]"sv,  "127.0.0.1"sv,  "1"sv,
        "127.1"sv,     "0x7f.1"sv, "a.0x7f"sv,  "a.1"sv,    "2130706433"sv, "bücher.example"sv,
        "a\u3002b"sv,  "*.a.b"sv,  "ab--c.d"sv, "xn--.a"sv, "xn--a-.b"sv,   "xn--99999999999.a"sv,
        "xn--abc-.a"sv})
    EXPECT_FALSE(is_name(text)) << text;
}

TEST(HostName, KeepsTheLimitsOfDns) {
  std::string label(63, 'a');
  EXPECT_TRUE(is_name(label + ".b"));
  EXPECT_FALSE(is_name(label + "a.b"));
  std::string longest = label + "." + label + "." + label + "." + std::string(61, 'b');
  EXPECT_EQ(longest.size(), 253u);
  EXPECT_TRUE(is_name(longest));
  EXPECT_FALSE(is_name(longest + "b"));
}

TEST(HostName, LiesBeneathOnALabelBoundaryOnly) {
  HostName suffix = *HostName::parse("allowed.com");
  EXPECT_TRUE(HostName::parse("a.allowed.com")->is_beneath(suffix));
  EXPECT_TRUE(HostName::parse("b.a.allowed.com")->is_beneath(suffix));
  EXPECT_FALSE(HostName::parse("allowed.com")->is_beneath(suffix));
  EXPECT_FALSE(HostName::parse("evil-allowed.com")->is_beneath(suffix));
  EXPECT_FALSE(HostName::parse("allowed.com.evil")->is_beneath(suffix));
}

// The same question answered another way: a list of labels, compared from the end. Written from the
// documents, not from the code.
std::optional<std::vector<std::string>> reference_labels(std::string text) {
  std::vector<std::string> labels(1);
  if (text.size() > 253) return std::nullopt;
  for (char c : text) {
    if (c == '.') {
      labels.emplace_back();
      continue;
    }
    labels.back().push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c));
  }
  const std::string letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  for (const std::string& label : labels) {
    if (label.empty() || label.size() > 63) return std::nullopt;
    if (label.find_first_not_of(letters + "-") != label.npos) return std::nullopt;
    if (label[0] == '-' || label[label.size() - 1] == '-') return std::nullopt;
    // None of the mutations makes a valid one.
    if (label.size() > 3 && label[2] == '-' && label[3] == '-') return std::nullopt;
  }
  const std::string& last = labels.back();
  if (last.find_first_not_of("0123456789") == last.npos) return std::nullopt;
  if (last.rfind("0x", 0) == 0 && last.find_first_not_of("0123456789abcdef", 2) == last.npos)
    return std::nullopt;
  return labels;
}

bool reference_allows(const std::string& text) {
  auto labels = reference_labels(text);
  if (!labels) return false;
  if (*labels == std::vector<std::string>{"pypi", "org"}) return true;
  return labels->size() > 2 && (*labels)[labels->size() - 1] == "com" &&
         (*labels)[labels->size() - 2] == "allowed";
}

class Mutations {
 public:
  std::string next() {
    static constexpr std::string_view kSeeds[] = {"pypi.org", "a.allowed.com", "allowed.com",
                                                  "x.y.allowed.com", "files.pypi.org"};
    std::string text(kSeeds[pick(std::size(kSeeds))]);
    for (size_t left = 1 + pick(3); left > 0; --left) mutate(text);
    return text;
  }

 private:
  size_t pick(size_t most) { return std::uniform_int_distribution<size_t>(0, most - 1)(random_); }

  void mutate(std::string& text) {
    static const std::string kBytes =
        std::string("\0", 1) + ".-_@:%/ \r\n\t[]*?#0x9aZ\x7f\x80\xe3\x80\x82\xff";
    size_t at = pick(text.size() + 1);
    switch (pick(8)) {
      case 0:
        text.insert(at, 1, kBytes[pick(kBytes.size())]);
        break;
      case 1:
        if (at < text.size()) text.erase(at, 1);
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ 0x20);
        break;
      case 3:
        text += pick(2) == 0 ? ".evil" : ".allowed.com";
        break;
      case 4:
        text.insert(0, pick(2) == 0 ? "evil-" : "evil.");
        break;
      case 5:
        text.insert(at, std::string(pick(80), 'a'));
        break;
      case 6:
        if (at < text.size()) text[at] = kBytes[pick(kBytes.size())];
        break;
      default:
        text += ".";
    }
  }

  std::mt19937 random_{7};
};

TEST(HostName, MutatedNamesAreDecidedAsTheReferenceDoes) {
  Policy policy;
  policy.rules = {*parse_short_rule("pypi.org"), *parse_short_rule("*.allowed.com")};
  Mutations mutations;
  std::set<std::string> seen;
  size_t allowed = 0;
  while (seen.size() < 5000) {
    std::string text = mutations.next();
    if (!seen.insert(text).second) continue;
    auto name = HostName::parse(text);
    bool decided = name && policy.decide(*name, 443).allowed();
    EXPECT_EQ(decided, reference_allows(text)) << testing::PrintToString(text);
    EXPECT_EQ(name && policy.decide_name(*name).allowed(), decided);
    if (decided) ++allowed;
  }
  EXPECT_GT(allowed, 100u);
}

}  // namespace
}  // namespace atl::egress
