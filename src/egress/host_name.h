// HostName: a DNS name in the one form that everything here is decided on. Whatever else a program
// writes (upper case, a final dot, a port, user information, percent signs, control characters,
// Unicode) is either brought into this form or is no name at all; nothing is guessed.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace atl::egress {

inline constexpr size_t kMaxNameBytes = 253;
inline constexpr size_t kMaxLabelBytes = 63;

class HostName {
 public:
  // Lower-cases ASCII. Labels of letters, digits and inner hyphens; those that begin with xn-- must
  // decode to something that needs it. A last label that a parser of addresses could take for a
  // number ("1", "0x7f") makes it no name.
  static std::optional<HostName> parse(std::string_view text);

  std::string_view view() const { return text_; }
  const std::string& string() const { return text_; }
  // At least one label more than `suffix`, which it ends with on a label boundary.
  bool is_beneath(const HostName& suffix) const;
  size_t label_count() const;
  auto operator<=>(const HostName&) const = default;

 private:
  explicit HostName(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// Whether what follows "xn--" is punycode (RFC 3492) of valid code points of which at least one is
// not ASCII.
bool is_punycode(std::string_view encoded);

}  // namespace atl::egress
