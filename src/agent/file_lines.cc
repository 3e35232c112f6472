#include "agent/file_lines.h"

#include <algorithm>

#include "agent/file_protocol.h"

namespace atl::agent {
namespace {

bool holds(std::string_view bytes, std::string_view text) {
  return memmem(bytes.data(), bytes.size(), text.data(), text.size()) != nullptr;
}

}  // namespace

LineSearch::LineSearch(std::string_view text, Found found)
    : text_(text), found_(std::move(found)) {}

bool LineSearch::add(std::string_view bytes) {
  if (bytes.find('\0') != bytes.npos) return false;
  while (true) {
    size_t newline = bytes.find('\n');
    add_to_line(bytes.substr(0, newline));
    if (newline == bytes.npos) return true;
    if (!end_line()) return false;
    bytes.remove_prefix(newline + 1);
  }
}

bool LineSearch::finish() { return end_line(); }

void LineSearch::add_to_line(std::string_view part) {
  size_t room = kMaxMatchTextBytes - beginning_.size();
  beginning_.append(part.substr(0, room));
  if (matched_) return;
  size_t overlap = text_.size() - 1;
  tail_.append(part.substr(0, overlap));
  matched_ = holds(tail_, text_) || holds(part, text_);
  if (part.size() >= overlap) tail_ = part.substr(part.size() - overlap);
  if (tail_.size() > overlap) tail_.erase(0, tail_.size() - overlap);
}

bool LineSearch::end_line() {
  bool more = !matched_ || found_({number_, beginning_});
  ++number_;
  matched_ = false;
  beginning_.clear();
  tail_.clear();
  return more;
}

}  // namespace atl::agent
