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

// Writes what strangers print, in pieces that may be cut anywhere, to one descriptor.
class OutputWriter {
 public:
  OutputWriter(int fd, OutputMode mode);

  Result<void> write(std::string_view bytes);
  // Writes what was held back because it may be the beginning of a character.
  Result<void> finish();

 private:
  int fd_;
  bool escapes_;
  std::string held_;
};

// Whether standard output is a terminal that wants colours: https://no-color.org.
bool wants_colours();
enum class Colour : unsigned char { kRed = 31, kGreen = 32, kYellow = 33 };
// As it is when no colours are wanted.
std::string coloured(Colour colour, const std::string& text);

}  // namespace atl::cli
