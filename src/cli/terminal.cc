#include "cli/terminal.h"

#include <stdlib.h>
#include <unistd.h>

#include <utility>

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

// How many bytes at the end may be a character whose rest is still to come.
size_t unfinished_bytes(std::string_view bytes) {
  for (size_t count = 1; count <= 3 && count <= bytes.size(); ++count) {
    auto first = static_cast<unsigned char>(bytes[bytes.size() - count]);
    if (first >= 0x80 && first < 0xc0) continue;
    size_t length = first < 0xc2 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    return length > count ? count : 0;
  }
  return 0;
}

}  // namespace

std::string escape_controls(std::string_view bytes) { return escape_but(bytes, "\n\t\r"); }

std::string escape_line(std::string_view text) { return escape_but(text, ""); }

OutputWriter::OutputWriter(int fd, OutputMode mode)
    : fd_(fd), escapes_(mode == OutputMode::kSafe && isatty(fd) == 1) {}

Result<void> OutputWriter::write(std::string_view bytes) {
  if (!escapes_) return write_all(fd_, bytes);
  std::string all = std::exchange(held_, "") + std::string(bytes);
  held_ = all.substr(all.size() - unfinished_bytes(all));
  all.resize(all.size() - held_.size());
  return write_all(fd_, escape_controls(all));
}

Result<void> OutputWriter::finish() {
  return write_all(fd_, escape_controls(std::exchange(held_, "")));
}

bool wants_colours() {
  const char* no_color = getenv("NO_COLOR");
  const char* term = getenv("TERM");
  bool refused = (no_color != nullptr && *no_color != '\0') || term == nullptr;
  return !refused && std::string_view(term) != "dumb" && isatty(STDOUT_FILENO) == 1;
}

std::string coloured(Colour colour, const std::string& text) {
  if (!wants_colours()) return text;
  return "\x1b[" + std::to_string(static_cast<int>(colour)) + "m" + text + "\x1b[0m";
}

}  // namespace atl::cli
