// TerminalFilter: what a program on a terminal of the user may say. Cursor and colours pass, as a
// shell or an editor needs them; strings for the terminal itself do not: they set the title, write
// the clipboard, or make the terminal type an answer for the user.
#pragma once

#include <string>
#include <string_view>

namespace atl::cli {

class TerminalFilter {
 public:
  // What of `bytes` may reach the terminal; sequences may be cut anywhere.
  std::string pass(std::string_view bytes);

 private:
  enum class State : unsigned char { kText, kEscape, kSequence, kString, kStringEscape };
  void take(char c, std::string& out);
  void take_escape(char c, std::string& out);
  void take_sequence(char c, std::string& out);

  State state_ = State::kText;
  std::string held_;
  bool after_c2_ = false;
};

}  // namespace atl::cli
