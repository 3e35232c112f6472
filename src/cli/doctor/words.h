// Taking the kernel's and the administrator's small text files apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atl::cli {

std::vector<std::string_view> split(std::string_view text, char separator);
// Words between spaces, tabs and line feeds.
std::vector<std::string_view> words_of(std::string_view text);
bool has_word(std::string_view text, std::string_view word);
// Decimal digits and nothing else.
std::optional<uint64_t> parse_number(std::string_view text);

}  // namespace atl::cli
