#include "egress/host_name.h"

#include <algorithm>
#include <cstdint>

namespace atl::egress {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

bool is_label(std::string_view label) {
  if (label.empty() || label.size() > kMaxLabelBytes) return false;
  if (label.front() == '-' || label.back() == '-') return false;
  auto allowed = [](char c) { return is_lower(c) || is_digit(c) || c == '-'; };
  if (!std::all_of(label.begin(), label.end(), allowed)) return false;
  // The third and fourth place are reserved for prefixes, of which only this one has a meaning.
  if (label.size() >= 4 && label.substr(2, 2) == "--")
    return label.starts_with("xn--") && is_punycode(label.substr(4));
  return true;
}

bool could_be_number(std::string_view label) {
  if (std::all_of(label.begin(), label.end(), is_digit)) return true;
  if (!label.starts_with("0x")) return false;
  auto is_hex = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); };
  return std::all_of(label.begin() + 2, label.end(), is_hex);
}

// RFC 3492, section 5.
constexpr uint32_t kBase = 36, kTMin = 1, kTMax = 26, kSkew = 38, kDamp = 700;
constexpr uint32_t kFirstPoint = 128, kLastPoint = 0x10ffff;

uint32_t adapt(uint32_t delta, uint32_t points, bool first) {
  delta = first ? delta / kDamp : delta / 2;
  delta += delta / points;
  uint32_t k = 0;
  for (; delta > ((kBase - kTMin) * kTMax) / 2; k += kBase) delta /= kBase - kTMin;
  return k + (kBase - kTMin + 1) * delta / (delta + kSkew);
}

uint32_t digit_value(char c) {
  return is_digit(c) ? static_cast<uint32_t>(c - '0' + 26) : static_cast<uint32_t>(c - 'a');
}

// One generalised integer; false if it overflows or the text ends in it.
bool take_integer(std::string_view& text, uint32_t bias, uint64_t& value) {
  uint64_t weight = 1;
  for (uint32_t k = kBase;; k += kBase) {
    if (text.empty() || text[0] == '-') return false;
    uint32_t digit = digit_value(text[0]);
    text.remove_prefix(1);
    value += digit * weight;
    if (value > UINT32_MAX) return false;
    uint32_t threshold = k <= bias ? kTMin : std::min(k - bias, kTMax);
    if (digit < threshold) return true;
    weight *= kBase - threshold;
    if (weight > UINT32_MAX) return false;
  }
}

}  // namespace

bool is_punycode(std::string_view encoded) {
  size_t hyphen = encoded.rfind('-');
  uint32_t points = hyphen == encoded.npos ? 0 : static_cast<uint32_t>(hyphen);
  std::string_view rest = hyphen == encoded.npos ? encoded : encoded.substr(hyphen + 1);
  if (rest.empty() || hyphen == 0) return false;
  uint64_t point = kFirstPoint;
  uint32_t bias = 72;
  uint64_t index = 0;
  for (bool first = true; !rest.empty(); first = false) {
    uint64_t before = index;
    if (!take_integer(rest, bias, index)) return false;
    ++points;
    bias = adapt(static_cast<uint32_t>(index - before), points, first);
    point += index / points;
    bool is_surrogate = point >= 0xd800 && point <= 0xdfff;
    if (point > kLastPoint || is_surrogate) return false;
    index = index % points + 1;
  }
  return true;
}

std::optional<HostName> HostName::parse(std::string_view text) {
  if (text.empty() || text.size() > kMaxNameBytes) return std::nullopt;
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  std::string_view rest = lower;
  while (true) {
    size_t dot = rest.find('.');
    std::string_view label = rest.substr(0, dot);
    if (!is_label(label)) return std::nullopt;
    if (dot == rest.npos) {
      if (could_be_number(label)) return std::nullopt;
      return HostName(std::move(lower));
    }
    rest.remove_prefix(dot + 1);
  }
}

bool HostName::is_beneath(const HostName& suffix) const {
  if (text_.size() <= suffix.text_.size() + 1 || !text_.ends_with(suffix.text_)) return false;
  return text_[text_.size() - suffix.text_.size() - 1] == '.';
}

size_t HostName::label_count() const {
  return static_cast<size_t>(std::count(text_.begin(), text_.end(), '.')) + 1;
}

}  // namespace atl::egress
