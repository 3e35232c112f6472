#include "cli/line_editor.h"

#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/utf8.h"
#include "cli/raw_terminal.h"
#include "cli/terminal.h"

namespace atl::cli {
namespace {

constexpr size_t kMostShown = 40;  // matches

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

size_t characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

std::string common_start(const std::vector<std::string>& words) {
  std::string common = words.front();
  for (const std::string& word : words) {
    auto [end, other] = std::mismatch(common.begin(), common.end(), word.begin(), word.end());
    common.erase(end, common.end());
  }
  return common;
}

// Of the key that the bytes begin with; 0: the rest of it is still to come.
size_t key_length(std::string_view bytes) {
  if (bytes.empty()) return 0;
  constexpr char kEscape = 0x1b;
  if (bytes[0] == kEscape && bytes.size() >= 3)
    return bytes.find_first_not_of("0123456789;", 2) + 1;     // none: 0
  if (bytes[0] == kEscape) return bytes.size() == 1 ? 1 : 0;  // a sequence comes in one piece
  if (static_cast<unsigned char>(bytes[0]) < 0x80) return 1;
  size_t length = utf8_sequence_length(bytes);
  return length == 0 && bytes.size() >= 4 ? 1 : length;
}

}  // namespace

void EditedLine::press(std::string_view key) {
  if (key == "\x1b[D" || key == "\x02") return move_left();
  if (key == "\x1b[C" || key == "\x06") return move_right();
  if (key == "\x1b[A" || key == "\x10") return show_history(place_ - (place_ > 0 ? 1 : 0));
  if (key == "\x1b[B" || key == "\x0e") return show_history(std::min(place_ + 1, history_.size()));
  if (key == "\x7f" || key == "\x08") return erase_left();
  if (key == "\x17") return erase_word();
  if (key == "\x01" || key == "\x1b[H" || key == "\x1bOH" || key == "\x1b[1~") {
    cursor_ = 0;
  } else if (key == "\x05" || key == "\x1b[F" || key == "\x1bOF" || key == "\x1b[4~") {
    cursor_ = text_.size();
  } else if (key == "\x0b") {
    text_.erase(cursor_);
  } else if (key == "\x15") {
    text_.erase(0, std::exchange(cursor_, 0));
  } else if (key == "\x1b[3~" || key == "\x04") {
    if (cursor_ == text_.size()) return;
    move_right();
    erase_left();
  } else if (!key.empty() && static_cast<unsigned char>(key[0]) >= 0x20) {
    insert(key);
  }
}

void EditedLine::insert(std::string_view text) {
  text_.insert(cursor_, text);
  cursor_ += text.size();
}

void EditedLine::complete(size_t start, std::string_view text) {
  if (start > cursor_) return;
  text_.replace(start, cursor_ - start, text);
  cursor_ = start + text.size();
}

void EditedLine::move_left() {
  if (cursor_ == 0) return;
  --cursor_;
  while (cursor_ > 0 && is_continuation(text_[cursor_])) --cursor_;
}

void EditedLine::move_right() {
  if (cursor_ == text_.size()) return;
  ++cursor_;
  while (cursor_ < text_.size() && is_continuation(text_[cursor_])) ++cursor_;
}

void EditedLine::erase_left() {
  size_t end = cursor_;
  move_left();
  text_.erase(cursor_, end - cursor_);
}

void EditedLine::erase_word() {
  size_t end = cursor_;
  while (cursor_ > 0 && text_[cursor_ - 1] == ' ') --cursor_;
  while (cursor_ > 0 && text_[cursor_ - 1] != ' ') --cursor_;
  text_.erase(cursor_, end - cursor_);
}

void EditedLine::show_history(size_t place) {
  if (place == place_) return;
  if (place_ == history_.size()) unfinished_ = text_;
  place_ = place;
  text_ = place_ == history_.size() ? unfinished_ : history_[place_];
  cursor_ = text_.size();
}

Result<std::string> LineEditor::read_key() {
  while (true) {
    if (size_t length = key_length(pending_)) {
      std::string key = pending_.substr(0, length);
      pending_.erase(0, length);
      return key;
    }
    char bytes[4096];
    ssize_t count = ::read(input_, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error::system("read the terminal");
    if (count == 0) return std::string();
    pending_.append(bytes, static_cast<size_t>(count));
  }
}

Result<void> LineEditor::show(const std::string& prompt, const EditedLine& line) const {
  // A history entry of several lines is shown on one.
  std::string text = line.text();
  std::replace(text.begin(), text.end(), '\n', ' ');
  size_t columns = terminal_size(output_).columns;
  size_t room = columns > characters(prompt) + 2 ? columns - characters(prompt) - 2 : 1;
  size_t before = characters(std::string_view(line.text()).substr(0, line.cursor()));
  size_t skipped = before > room ? before - room : 0;
  std::string shown;
  size_t at = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    at += is_continuation(text[i]) ? 0 : 1;
    if (at > skipped && at <= skipped + room) shown += text[i];
  }
  std::string out = "\r" + prompt + escape_line(shown) + "\x1b[K\r";
  size_t column = characters(prompt) + before - skipped;
  if (column > 0) out += "\x1b[" + std::to_string(column) + "C";
  return write_all(output_, out);
}

Result<void> LineEditor::complete(const std::string& prompt, EditedLine& line) {
  std::string before = line.text().substr(0, line.cursor());
  if (before.find_first_not_of(' ') == std::string::npos) {
    line.insert("    ");
    return {};
  }
  Completion found = complete_(before);
  if (found.matches.empty()) return {};
  std::string common = common_start(found.matches);
  bool adds = found.start + common.size() > before.size();
  if (adds || found.matches.size() == 1) {
    line.complete(found.start, common);
    return {};
  }
  std::string list = "\r\n";
  size_t most = std::min(found.matches.size(), kMostShown);
  for (size_t i = 0; i < most; ++i) list += escape_line(found.matches[i]) + "  ";
  if (found.matches.size() > most) list += "…";
  ATOLL_TRY_VOID(write_all(output_, list + "\r\n"));
  return show(prompt, line);
}

Result<LineEditor::Line> LineEditor::read(const std::string& prompt) {
  ATOLL_TRY(RawTerminal raw, RawTerminal::enter(input_));
  EditedLine line(history_);
  std::optional<End> end;
  while (!end) {
    ATOLL_TRY_VOID(show(prompt, line));
    ATOLL_TRY(std::string key, read_key());
    if (key == "\r" || key == "\n") {
      end = End::kLine;
    } else if (key == "\x03") {
      end = End::kInterrupt;
    } else if (key.empty() || (key == "\x04" && line.text().empty())) {
      end = End::kEnd;
    } else if (key == "\t") {
      ATOLL_TRY_VOID(complete(prompt, line));
    } else {
      line.press(key);
    }
  }
  ATOLL_TRY_VOID(write_all(output_, "\r\n"));
  return Line{*end, line.text()};
}

}  // namespace atl::cli
