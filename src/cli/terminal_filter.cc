#include "cli/terminal_filter.h"

#include <utility>

namespace atl::cli {
namespace {

constexpr size_t kMaxSequenceBytes = 64;

// A sequence that makes the terminal answer: device attributes, reports of state, of the window and
// its title, of checksums and of settings.
bool asks(std::string_view sequence) {
  char last = sequence.back();
  std::string_view inside = sequence.substr(2, sequence.size() - 3);
  if (last == 'c' || last == 'n') return true;
  if (last == 't') return true;
  if (last == 'x') return true;
  return inside.find_first_of("$*") != inside.npos && (last == 'p' || last == 'w' || last == 'y');
}

}  // namespace

std::string TerminalFilter::pass(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (char c : bytes) take(c, out);
  return out;
}

void TerminalFilter::take(char c, std::string& out) {
  auto byte = static_cast<unsigned char>(c);
  switch (state_) {
    case State::kText:
      // U+0080 to U+009f are the same controls as ESC and a letter; nothing needs them.
      if (std::exchange(after_c2_, false)) {
        if (byte >= 0x80 && byte < 0xa0) return;
        out += '\xc2';
      }
      after_c2_ = byte == 0xc2;
      if (after_c2_) return;
      // ENQ makes a terminal answer with a text of its owner.
      if (byte == 0x05) return;
      if (c != '\x1b') {
        out += c;
        return;
      }
      held_ = c;
      state_ = State::kEscape;
      return;
    case State::kEscape:
      return take_escape(c, out);
    case State::kSequence:
      return take_sequence(c, out);
    case State::kString:
      if (c == '\x07' || byte == 0x18 || byte == 0x1a) state_ = State::kText;
      if (c == '\x1b') state_ = State::kStringEscape;
      return;
    case State::kStringEscape:
      state_ = c == '\\' ? State::kText : State::kString;
      return;
  }
}

void TerminalFilter::take_escape(char c, std::string& out) {
  constexpr std::string_view kStrings = "]PX^_";
  state_ = State::kText;
  if (c == '[') {
    held_ += c;
    state_ = State::kSequence;
  } else if (kStrings.find(c) != kStrings.npos) {
    state_ = State::kString;
  } else if (c == '\x1b') {
    state_ = State::kEscape;
  } else if (c != 'Z') {  // ESC Z asks who the terminal is
    out += held_;
    out += c;
  }
}

void TerminalFilter::take_sequence(char c, std::string& out) {
  held_ += c;
  bool is_end = c >= 0x40 && c <= 0x7e;
  bool is_broken = static_cast<unsigned char>(c) < 0x20 || held_.size() > kMaxSequenceBytes;
  if (!is_end && !is_broken) return;
  state_ = State::kText;
  if (is_end && !asks(held_)) out += held_;
}

}  // namespace atl::cli
