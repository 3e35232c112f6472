// Bytes of strangers on the user's terminal. A program's output may carry control sequences that
// move the cursor, set the title or answer for the user, so on a terminal they are shown, not
// obeyed.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::cli {

enum class OutputMode : unsigned char {
  kSafe,  // escape on a terminal, as they are into a pipe or file
  kRaw,   // always as they are
};

// Control characters but \n, \t and \r, and bytes that are not UTF-8, become \xNN.
std::string escape_controls(std::string_view bytes);
// The same for text that must stay on one line.
std::string escape_line(std::string_view text);

Result<void> write_output(int fd, std::string_view bytes, OutputMode mode);

}  // namespace atl::cli
