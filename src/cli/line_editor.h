// LineEditor: one line at a time from the user's terminal, with the keys that people expect:
// cursor, history, completion. Small enough not to need a library.
//
// EditedLine is the line alone, without a terminal: what each key does to it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl::cli {

class EditedLine {
 public:
  explicit EditedLine(const std::vector<std::string>& history)
      : history_(history), place_(history.size()) {}

  // A key as the terminal sends it: a character, a control character or a whole sequence.
  void press(std::string_view key);
  void insert(std::string_view text);
  // Replaces all from the byte `start` to the cursor.
  void complete(size_t start, std::string_view text);

  const std::string& text() const { return text_; }
  size_t cursor() const { return cursor_; }  // a byte

 private:
  void move_left();
  void move_right();
  void erase_left();
  void erase_word();
  void show_history(size_t place);

  const std::vector<std::string>& history_;
  size_t place_;
  std::string text_, unfinished_;
  size_t cursor_ = 0;
};

struct Completion {
  size_t start = 0;  // a byte of the text
  std::vector<std::string> matches = {};
};

class LineEditor {
 public:
  // `complete` is asked for what could stand at the end of the text.
  LineEditor(int input, int output, std::function<Completion(const std::string&)> complete)
      : input_(input), output_(output), complete_(std::move(complete)) {}

  enum class End : unsigned char { kLine, kInterrupt, kEnd };
  struct Line {
    End end;
    std::string text;
  };
  Result<Line> read(const std::string& prompt);
  std::vector<std::string>& history() { return history_; }

 private:
  Result<std::string> read_key();
  Result<void> show(const std::string& prompt, const EditedLine& line) const;
  Result<void> complete(const std::string& prompt, EditedLine& line);

  int input_, output_;
  std::function<Completion(const std::string&)> complete_;
  std::vector<std::string> history_;
  std::string pending_;
};

}  // namespace atl::cli
