#include "base/utf8.h"

namespace atl {

size_t utf8_sequence_length(std::string_view text) {
  if (text.empty()) return 0;
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  auto continues = [&](size_t i) { return i < text.size() && (byte(i) & 0xc0) == 0x80; };
  unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (!continues(1) || !continues(2)) return 0;
    if (first == 0xe0 && byte(1) < 0xa0) return 0;  // overlong
    if (first == 0xed && byte(1) > 0x9f) return 0;  // surrogate
    return 3;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    if (first == 0xf0 && byte(1) < 0x90) return 0;  // overlong
    if (first == 0xf4 && byte(1) > 0x8f) return 0;  // above U+10FFFF
    return 4;
  }
  return 0;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    size_t length = utf8_sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string readable_utf8(std::string_view text) {
  std::string made;
  while (!text.empty()) {
    size_t length = utf8_sequence_length(text);
    made += length > 0 ? text.substr(0, length) : "\xef\xbf\xbd";
    text.remove_prefix(length > 0 ? length : 1);
  }
  return made;
}

}  // namespace atl
