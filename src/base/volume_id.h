// The id of a volume; see base/ids.h.
#pragma once

#include <array>
#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace atl {

// `v` followed by 19 characters of base 32: 95 random bits, 20 bytes.
class VolumeId {
 public:
  static constexpr size_t kLength = 20;

  static VolumeId draw();
  static std::optional<VolumeId> parse(std::string_view text);

  std::string_view view() const { return {text_.data(), text_.size()}; }
  std::string string() const { return std::string(view()); }
  auto operator<=>(const VolumeId&) const = default;

 private:
  VolumeId() = default;
  std::array<char, kLength> text_;
};

}  // namespace atl
