// UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace atl {

// Length of the sequence that `text` starts with, 1 to 4; 0 if it starts with none.
size_t utf8_sequence_length(std::string_view text);

bool is_utf8(std::string_view text);

// The same text, with U+FFFD for every byte that belongs to none.
std::string readable_utf8(std::string_view text);

}  // namespace atl
