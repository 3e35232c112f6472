#include "api/v1/exec_event.h"

#include <algorithm>
#include <charconv>

#include <boost/json/serialize.hpp>
#include <boost/json/string_view.hpp>

#include "api/base64.h"
#include "base/utf8.h"

namespace atl::api::v1 {

namespace {

// The length that its first byte promises; 1 for a byte that starts nothing.
size_t promised_length(unsigned char first) {
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  if (first >= 0xf0 && first <= 0xf4) return 4;
  return 1;
}

}  // namespace

std::string OutputPosition::id() const {
  return std::to_string(standard_output) + "-" + std::to_string(standard_error);
}

std::optional<OutputPosition> parse_position(std::string_view text) {
  OutputPosition position;
  const char* last = text.data() + text.size();
  auto [dash, first_error] = std::from_chars(text.data(), last, position.standard_output);
  if (first_error != std::errc() || dash == last || *dash != '-') return std::nullopt;
  auto [end, second_error] = std::from_chars(dash + 1, last, position.standard_error);
  if (second_error != std::errc() || end != last) return std::nullopt;
  return position;
}

size_t whole_characters(std::string_view bytes) {
  for (size_t back = 1; back <= std::min<size_t>(3, bytes.size()); ++back) {
    auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    return promised_length(byte) > back ? bytes.size() - back : bytes.size();
  }
  return bytes.size();
}

std::string output_data(std::string_view bytes) {
  if (!is_utf8(bytes)) return "{\"base64\":\"" + to_base64(bytes) + "\"}";
  return "{\"text\":" + boost::json::serialize(boost::json::string_view(bytes)) + "}";
}

}  // namespace atl::api::v1
