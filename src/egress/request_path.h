// The path of a request in the one form that rules are compared with, and the patterns of rules.
// The bytes that go on to the server are the client's own, so a path that servers read in different
// ways (dot segments, hidden slashes, double encoding) has no such form and is refused.
#pragma once

#include <string>
#include <string_view>

#include "base/glob.h"
#include "base/result.h"

namespace atl::egress {

// `path` is the target before '?'. Escapes of plain characters are undone, others are in upper
// case. kDenied with reason bad_path.
Result<std::string> canonical_path(std::string_view path);

// A glob over canonical paths: * within a part, ** across parts.
class PathPattern {
 public:
  static Result<PathPattern> parse(std::string_view text);
  bool matches(std::string_view canonical) const { return glob_.matches(canonical); }
  const std::string& text() const { return text_; }
  bool operator==(const PathPattern& other) const { return text_ == other.text_; }

 private:
  PathPattern(std::string text, Glob glob) : text_(std::move(text)), glob_(std::move(glob)) {}
  std::string text_;
  Glob glob_;
};

}  // namespace atl::egress
