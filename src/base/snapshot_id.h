// The id of a snapshot; see base/ids.h.
#pragma once

#include <array>
#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace atl {

// `n` followed by 19 characters of base 32: 95 random bits, 20 bytes.
class SnapshotId {
 public:
  static constexpr size_t kLength = 20;

  static SnapshotId draw();
  static std::optional<SnapshotId> parse(std::string_view text);

  std::string_view view() const { return {text_.data(), text_.size()}; }
  std::string string() const { return std::string(view()); }
  auto operator<=>(const SnapshotId&) const = default;

 private:
  SnapshotId() = default;
  std::array<char, kLength> text_;
};

}  // namespace atl
