// DetachKeys: finds Enter ~ . in what the user types, as ssh(1) does. A second ~ types one.
#pragma once

#include <string>
#include <string_view>

namespace atl::cli {

class DetachKeys {
 public:
  // What goes on to the program; the rest is kept back.
  std::string take(std::string_view typed) {
    std::string out;
    for (char c : typed) {
      if (is_asked_) break;
      if (has_tilde_) {
        has_tilde_ = false;
        is_asked_ = c == '.';
        if (c != '.' && c != '~') out += '~';
        if (is_asked_) break;
      } else if (c == '~' && at_line_start_) {
        has_tilde_ = true;
        at_line_start_ = false;
        continue;
      }
      at_line_start_ = c == '\r' || c == '\n';
      out += c;
    }
    return out;
  }
  bool is_asked() const { return is_asked_; }

 private:
  bool at_line_start_ = true;
  bool has_tilde_ = false;
  bool is_asked_ = false;
};

}  // namespace atl::cli
