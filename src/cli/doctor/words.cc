#include "cli/doctor/words.h"

#include <algorithm>
#include <charconv>

namespace atl::cli {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n";
  std::vector<std::string_view> words;
  while (true) {
    size_t start = text.find_first_not_of(kBlank);
    if (start == text.npos) return words;
    size_t end = std::min(text.find_first_of(kBlank, start), text.size());
    words.push_back(text.substr(start, end - start));
    text.remove_prefix(end);
  }
}

bool has_word(std::string_view text, std::string_view word) {
  std::vector<std::string_view> words = words_of(text);
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace atl::cli
