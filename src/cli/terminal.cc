#include "cli/terminal.h"

#include <unistd.h>

#include "base/file.h"
#include "base/utf8.h"

namespace atl::cli {
namespace {

void append_escaped(std::string& out, std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (unsigned char byte : bytes) {
    out += "\\x";
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
}

bool is_control(std::string_view sequence) {
  unsigned char first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7f;
  // U+0080 to U+009f: terminals obey them as they obey ESC sequences.
  return sequence.size() == 2 && first == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0;
}

std::string escape_but(std::string_view bytes, std::string_view allowed) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    size_t length = utf8_sequence_length(bytes);
    std::string_view sequence = bytes.substr(0, length == 0 ? 1 : length);
    bool keep = length == 1 && allowed.find(sequence[0]) != allowed.npos;
    if (length != 0 && (keep || !is_control(sequence)))
      out += sequence;
    else
      append_escaped(out, sequence);
    bytes.remove_prefix(sequence.size());
  }
  return out;
}

}  // namespace

std::string escape_controls(std::string_view bytes) { return escape_but(bytes, "\n\t\r"); }

std::string escape_line(std::string_view text) { return escape_but(text, ""); }

Result<void> write_output(int fd, std::string_view bytes, OutputMode mode) {
  if (mode == OutputMode::kSafe && isatty(fd)) return write_all(fd, escape_controls(bytes));
  return write_all(fd, bytes);
}

}  // namespace atl::cli
