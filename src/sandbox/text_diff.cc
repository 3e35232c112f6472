#include "sandbox/text_diff.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace atl::sandbox {

namespace {

using Lines = std::vector<std::string_view>;

constexpr size_t kContextLines = 3;
constexpr int kMaxEdits = 400;  // of lines; the time it takes grows with their square

// Each with its end, if it has one.
Lines split(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    size_t length = end == text.npos ? text.size() : end + 1;
    lines.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

// A run of lines of one text in the place of a run of the other.
struct Edit {
  size_t before, before_end, after, after_end;
};

// Myers' greedy search for the fewest edits: `reach` holds, for each diagonal, how far the first
// text is used up after so many edits.
class Search {
 public:
  Search(const Lines& before, const Lines& after) : before_(before), after_(after) {}

  std::vector<Edit> run() {
    int edits = 0;
    while (edits <= kMaxEdits && !step(edits)) ++edits;
    if (edits > kMaxEdits) return {{0, before_.size(), 0, after_.size()}};
    return walk_back(edits);
  }

 private:
  static int at(int diagonal) { return diagonal + kMaxEdits + 1; }

  bool goes_down(int diagonal, int edits, const std::vector<int>& reach) const {
    return diagonal == -edits ||
           (diagonal != edits && reach[at(diagonal - 1)] < reach[at(diagonal + 1)]);
  }

  bool step(int edits) {
    rounds_.push_back(reach_);
    for (int diagonal = -edits; diagonal <= edits; diagonal += 2) {
      int x = goes_down(diagonal, edits, reach_) ? reach_[at(diagonal + 1)]
                                                 : reach_[at(diagonal - 1)] + 1;
      int y = x - diagonal;
      while (x < count(before_) && y < count(after_) && before_[x] == after_[y]) ++x, ++y;
      reach_[at(diagonal)] = x;
      if (x >= count(before_) && y >= count(after_)) return true;
    }
    return false;
  }

  std::vector<Edit> walk_back(int edits) const {
    std::vector<Edit> found;
    int x = count(before_), y = count(after_);
    for (; edits > 0; --edits) {
      const std::vector<int>& reach = rounds_[edits];
      int diagonal = x - y;
      bool down = goes_down(diagonal, edits, reach);
      int from = down ? diagonal + 1 : diagonal - 1;
      int from_x = reach[at(from)], from_y = from_x - from;
      int end_x = down ? from_x : from_x + 1, end_y = down ? from_y + 1 : from_y;
      add(found, {static_cast<size_t>(from_x), static_cast<size_t>(end_x),
                  static_cast<size_t>(from_y), static_cast<size_t>(end_y)});
      x = from_x;
      y = from_y;
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

  // The one before it in the texts; it is joined with what it touches.
  static void add(std::vector<Edit>& found, Edit edit) {
    bool touches = !found.empty() && found.back().before == edit.before_end &&
                   found.back().after == edit.after_end;
    if (!touches) {
      found.push_back(edit);
      return;
    }
    found.back().before = edit.before;
    found.back().after = edit.after;
  }

  static int count(const Lines& lines) { return static_cast<int>(lines.size()); }

  const Lines& before_;
  const Lines& after_;
  std::vector<int> reach_ = std::vector<int>(2 * kMaxEdits + 3, 0);
  std::vector<std::vector<int>> rounds_;
};

void put_line(std::string& out, char mark, std::string_view line) {
  out += mark;
  out += line;
  if (!line.ends_with('\n')) out += "\n\\ No newline at end of file\n";
}

std::string range_of(size_t begin, size_t end) {
  // Of nothing, the line before it is named.
  return std::to_string(end > begin ? begin + 1 : begin) + "," + std::to_string(end - begin);
}

// Edits that are close enough to share their context.
void put_hunk(std::string& out, const Lines& before, const Lines& after,
              const std::vector<Edit>& edits) {
  size_t lead = std::min(kContextLines, edits.front().before);
  size_t tail = std::min(kContextLines, before.size() - edits.back().before_end);
  out += "@@ -" + range_of(edits.front().before - lead, edits.back().before_end + tail) + " +" +
         range_of(edits.front().after - lead, edits.back().after_end + tail) + " @@\n";
  size_t at = edits.front().before - lead;
  for (const Edit& edit : edits) {
    for (; at < edit.before; ++at) put_line(out, ' ', before[at]);
    for (; at < edit.before_end; ++at) put_line(out, '-', before[at]);
    for (size_t i = edit.after; i < edit.after_end; ++i) put_line(out, '+', after[i]);
  }
  for (size_t end = at + tail; at < end; ++at) put_line(out, ' ', before[at]);
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after, std::string_view path) {
  if (before == after) return "";
  Lines old_lines = split(before), new_lines = split(after);
  std::vector<Edit> edits = Search(old_lines, new_lines).run();
  std::string out = "--- a" + std::string(path) + "\n+++ b" + std::string(path) + "\n";
  std::vector<Edit> hunk;
  for (const Edit& edit : edits) {
    bool far = !hunk.empty() && edit.before - hunk.back().before_end > 2 * kContextLines;
    if (far) put_hunk(out, old_lines, new_lines, std::exchange(hunk, {}));
    hunk.push_back(edit);
  }
  if (!hunk.empty()) put_hunk(out, old_lines, new_lines, hunk);
  return out;
}

}  // namespace atl::sandbox
