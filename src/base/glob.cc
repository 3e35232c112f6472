#include "base/glob.h"

#include <errno.h>

#include <algorithm>

#include "base/utf8.h"

namespace atl {
namespace {

constexpr size_t kMaxPatternBytes = 1024;
// Bytes that are not UTF-8 are characters of their own.
constexpr char32_t kFirstLoneByte = 0x110000;

std::vector<char32_t> characters_of(std::string_view text) {
  std::vector<char32_t> characters;
  characters.reserve(text.size());
  while (!text.empty()) {
    size_t length = utf8_sequence_length(text);
    auto first = static_cast<unsigned char>(text[0]);
    char32_t character = first;
    if (length == 0) character = kFirstLoneByte + first;
    if (length > 1) character = first & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; ++i)
      character = character << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
    characters.push_back(character);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return characters;
}

}  // namespace

struct Glob::Parser {
  std::vector<char32_t> pattern;
  size_t next = 0;

  bool more() const { return next < pattern.size(); }
  bool take(char32_t character) {
    bool there = more() && pattern[next] == character;
    if (there) ++next;
    return there;
  }
  // The next character, or the one behind a backslash; false at the end.
  bool take_literal(char32_t& character) {
    take('\\');
    if (!more()) return false;
    character = pattern[next++];
    return true;
  }
  bool parse_set(Token& token);
  Token parse_stars(bool at_part_begin);
};

bool Glob::Parser::parse_set(Token& token) {
  token.negated = take('!') || take('^');
  // A bracket that comes first is meant itself.
  for (bool first = true; first || !take(']'); first = false) {
    Range range = {};
    if (!take_literal(range.first)) return false;
    range.last = range.first;
    bool is_range = next + 1 < pattern.size() && pattern[next] == '-' && pattern[next + 1] != ']';
    if (is_range) {
      ++next;
      if (!take_literal(range.last)) return false;
    }
    if (range.last < range.first) return false;
    token.ranges.push_back(range);
  }
  return true;
}

Glob::Token Glob::Parser::parse_stars(bool at_part_begin) {
  if (!take('*')) return {.kind = Kind::kMany};
  while (take('*')) {
  }
  if (at_part_begin && take('/')) return {.kind = Kind::kDirectories};
  return {.kind = Kind::kAcross};
}

Result<Glob> Glob::parse(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) return Error(Code::kInvalid, "glob too long", EINVAL);
  Glob glob;
  glob.has_slash_ = pattern.find('/') != pattern.npos || pattern.find("**") != pattern.npos;
  Parser parser = {characters_of(pattern)};
  while (parser.more()) {
    bool at_part_begin = parser.next == 0 || parser.pattern[parser.next - 1] == '/';
    Token token = {.kind = Kind::kOne};
    bool good = true;
    if (parser.take('*')) {
      token = parser.parse_stars(at_part_begin);
    } else if (parser.take('?')) {
      token.kind = Kind::kAny;
    } else if (parser.take('[')) {
      token.kind = Kind::kSet;
      good = parser.parse_set(token);
    } else {
      good = parser.take_literal(token.character);
    }
    if (!good) return Error(Code::kInvalid, "malformed glob", EINVAL);
    glob.tokens_.push_back(std::move(token));
  }
  return glob;
}

bool Glob::takes(const Token& token, char32_t character) {
  switch (token.kind) {
    case Kind::kOne:
      return token.character == character;
    case Kind::kAny:
    case Kind::kMany:
      return character != '/';
    case Kind::kSet: {
      auto holds = [&](const Range& r) { return r.first <= character && character <= r.last; };
      bool found = std::any_of(token.ranges.begin(), token.ranges.end(), holds);
      return character != '/' && found != token.negated;
    }
    case Kind::kAcross:
    case Kind::kDirectories:
      return true;
  }
  return false;
}

// Tokens that may stand for nothing are passed at once.
void Glob::arrive(std::vector<bool>& states, size_t state) const {
  while (!states[state]) {
    states[state] = true;
    if (state == tokens_.size()) return;
    Kind kind = tokens_[state].kind;
    bool optional = kind == Kind::kMany || kind == Kind::kAcross || kind == Kind::kDirectories;
    if (!optional) return;
    ++state;
  }
}

bool Glob::matches(std::string_view text) const {
  // A state is the number of tokens that are behind; the ones that are possible go in step.
  std::vector<bool> states(tokens_.size() + 1), next(states.size());
  // Inside of "**/" one leaves only behind a slash, so staying there is not arriving.
  arrive(states, 0);
  for (char32_t character : characters_of(text)) {
    std::fill(next.begin(), next.end(), false);
    std::vector<size_t> staying;
    for (size_t state = 0; state < tokens_.size(); ++state) {
      if (!states[state] || !takes(tokens_[state], character)) continue;
      Kind kind = tokens_[state].kind;
      bool stays = kind == Kind::kMany || kind == Kind::kAcross || kind == Kind::kDirectories;
      if (kind == Kind::kDirectories)
        staying.push_back(state);
      else
        arrive(next, stays ? state : state + 1);
      if (kind == Kind::kDirectories && character == '/') arrive(next, state + 1);
    }
    for (size_t state : staying) next[state] = true;
    states.swap(next);
  }
  return states[tokens_.size()];
}

}  // namespace atl
