// Strict reading of TOML: every key that is asked for is known, every other one is an error that
// names the file, the line and the nearest key that is known. The first error is kept and later
// reads do nothing; ask the document's error() once at the end.
//
// The only file beside its .cc that knows toml++, which is compiled without exceptions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace atl::store {
[[noreturn]] void fail_toml_assertion();
}
// Text can reach what toml++ 3.3 asserts, as "[[" at the end of a line does: then parsing fails.
#define TOML_ASSERT(condition) ((condition) ? void() : ::atl::store::fail_toml_assertion())
#include <toml++/toml.h>

namespace atl::store {

using TextPairs = std::vector<std::pair<std::string, std::string>>;

// Keys of one path and tables in one another are bounded, because toml++ recurses over them.
inline constexpr size_t kMaxTomlDots = 64;

class TomlDocument {
 public:
  // `file` is for messages only.
  static Result<TomlDocument> parse(std::string_view text, std::string file);

  const toml::table& root() const { return root_; }
  const std::optional<Error>& error() const { return error_; }
  // Both keep the first one.
  void fail(const toml::node& where, std::string_view message);
  void fail_at(size_t line, std::string_view message);

 private:
  TomlDocument(std::string file, toml::table root)
      : file_(std::move(file)), root_(std::move(root)) {}

  std::string file_;
  toml::table root_;
  std::optional<Error> error_;
};

struct Range {
  uint64_t least;
  uint64_t most;
};

class TomlSection {
 public:
  // `name` is "" for the top of the document.
  TomlSection(TomlDocument& document, const toml::table& table, std::string name)
      : document_(document), table_(table), name_(std::move(name)) {}

  // Each leaves `value` as it is when the key is missing, and says whether it was there.
  bool text(std::string_view key, std::string& value);
  bool texts(std::string_view key, std::vector<std::string>& value);
  // A table of strings, in the order of their names.
  bool text_pairs(std::string_view key, TextPairs& value);
  bool boolean(std::string_view key, bool& value);
  bool whole(std::string_view key, Range range, uint64_t& value);
  bool wholes(std::string_view key, Range range, std::vector<uint64_t>& value);
  bool size(std::string_view key, Range range_bytes, uint64_t& value_bytes);
  bool duration(std::string_view key, uint64_t most_ms, uint64_t& value_ms);
  // A number of 0.01 or more, times 1000.
  bool millis(std::string_view key, Range range_millis, uint64_t& value_millis);
  std::optional<TomlSection> section(std::string_view key);
  // A list of tables; empty when the key is missing.
  std::vector<TomlSection> sections(std::string_view key);

  // Refuses the value of a key that was read.
  void refuse(std::string_view key, std::string_view why);
  // Refuses the table as a whole.
  void refuse_section(std::string_view why);
  void require(bool present, std::string_view key);
  // Refuses every key that nobody asked for. Call last.
  void finish();

 private:
  const toml::node* find(std::string_view key);
  std::string named(std::string_view key) const;

  TomlDocument& document_;
  const toml::table& table_;
  std::string name_;
  std::vector<std::string> known_;
};

// As a string of TOML, in quotes. `text` is UTF-8.
std::string toml_text(std::string_view text);

// Insertions, deletions and replacements that turn `a` into `b`.
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace atl::store
