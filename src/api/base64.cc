#include "api/base64.h"

#include <cstdint>

namespace atl::api {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  while (!bytes.empty()) {
    std::string_view group = bytes.substr(0, 3);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0u);
    for (size_t i = 0; i < 4; ++i)
      text += i <= group.size() ? kAlphabet[bits >> (18 - 6 * i) & 63] : '=';
    bytes.remove_prefix(group.size());
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  unsigned held = 0;
  std::string_view digits = text.substr(0, text.find('='));
  for (char digit : digits) {
    size_t value = kAlphabet.find(digit);
    if (value == kAlphabet.npos) return std::nullopt;
    bits = (bits << 6 | static_cast<uint32_t>(value)) & 0xffffff;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 0xff);
  }
  // Padding, and the bits that belong to no byte, have one right form only.
  if (to_base64(bytes) != text) return std::nullopt;
  return bytes;
}

}  // namespace atl::api
