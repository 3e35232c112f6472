// Glob patterns: * and ? within a part of a path, [a-z] [!a-z], ** across parts, "**/" for any
// number of directories, \ before a character that is meant itself. A character is one of UTF-8, or
// a byte that belongs to none. Matching takes at most the product of both lengths, whatever the
// pattern.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl {

class Glob {
 public:
  // An error if a bracket is not closed, a range runs backwards or a backslash stands last.
  static Result<Glob> parse(std::string_view pattern);

  bool matches(std::string_view text) const;
  // It speaks of paths, not of names alone.
  bool has_slash() const { return has_slash_; }

 private:
  enum class Kind : uint8_t { kOne, kAny, kSet, kMany, kAcross, kDirectories };
  struct Range {
    char32_t first, last;
  };
  struct Token {
    Kind kind;
    char32_t character = 0;  // kOne
    bool negated = false;    // kSet
    std::vector<Range> ranges = {};
  };
  struct Parser;

  static bool takes(const Token& token, char32_t character);
  void arrive(std::vector<bool>& states, size_t state) const;

  std::vector<Token> tokens_;
  bool has_slash_ = false;
};

}  // namespace atl
