#include "store/go_program.h"

#include <algorithm>
#include <string_view>

#include "store/template_manifest.h"
#include "store/toml_section.h"

namespace atl::store {
namespace {

constexpr size_t kMaxPathBytes = 256;
constexpr size_t kMaxVersionBytes = 128;
constexpr size_t kMaxChanges = 16;
constexpr size_t kMaxChangeBytes = 4096;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_letter_or_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Parts between slashes, none of which is hidden, leads upwards or could be taken for an option.
bool is_path(std::string_view text) {
  if (text.empty() || text.size() > kMaxPathBytes) return false;
  char before = '/';
  for (char c : text) {
    bool begins = before == '/';
    bool allowed = is_letter_or_digit(c) || (!begins && (c == '.' || c == '-' || c == '/')) ||
                   c == '_' || c == '~';
    if (!allowed || (c == '.' && before == '.')) return false;
    before = c;
  }
  return before != '/';
}

// Its first part is the name of a host.
bool is_module(std::string_view text) {
  return is_path(text) && text.substr(0, text.find('/')).find('.') != text.npos;
}

bool is_version(std::string_view text) {
  auto allowed = [](char c) { return is_letter_or_digit(c) || c == '.' || c == '-' || c == '+'; };
  return text.size() >= 2 && text.size() <= kMaxVersionBytes && text[0] == 'v' &&
         is_digit(text[1]) && std::all_of(text.begin(), text.end(), allowed) &&
         std::count(text.begin(), text.end(), '.') >= 2;
}

bool is_release(std::string_view text) {
  return text.size() <= 32 && std::count(text.begin(), text.end(), '.') == 2 &&
         is_digit(text.front()) && is_digit(text.back()) && text.find("..") == text.npos &&
         text.find_first_not_of("0123456789.") == text.npos;
}

bool is_sum(std::string_view text) {
  constexpr std::string_view kPrefix = "h1:";
  constexpr size_t kDigits64 = 43;  // of 32 bytes, before the padding
  if (text.size() != kPrefix.size() + kDigits64 + 1 || !text.starts_with(kPrefix)) return false;
  std::string_view digits = text.substr(kPrefix.size(), kDigits64);
  auto allowed = [](char c) { return is_letter_or_digit(c) || c == '+' || c == '/'; };
  return text.ends_with('=') && std::all_of(digits.begin(), digits.end(), allowed);
}

bool is_place(std::string_view text) { return text.starts_with('/') && is_path(text.substr(1)); }

SourceChange read_change(TomlSection section) {
  SourceChange change;
  section.require(section.text("file", change.file), "file");
  if (!is_path(change.file)) section.refuse("file", "is no file of a module");
  for (auto [key, text] : {std::pair("from", &change.from), std::pair("into", &change.into)}) {
    section.require(section.text(key, *text), key);
    if (text->size() > kMaxChangeBytes) section.refuse(key, "is over 4096 bytes");
  }
  if (change.from.empty()) section.refuse("from", "is empty");
  section.finish();
  return change;
}

struct Wanted {
  const char* key;
  std::string& value;
  bool (*valid)(std::string_view);
  const char* otherwise;
};

}  // namespace

GoProgram read_go_program(TomlSection& section) {
  GoProgram program;
  const Wanted all[] = {
      {"module", program.module, is_module, "is not the path of a Go module"},
      {"version", program.version, is_version, "must be one version like \"v1.2.3\""},
      {"sum", program.sum, is_sum, "must be \"h1:\" and 44 characters of base 64"},
      {"to", program.to, is_place, "must be an absolute path"},
      {"toolchain", program.toolchain, is_release, "must be one version like \"1.26.1\""},
      {"toolchain_sum", program.toolchain_sum, is_sum,
       "must be \"h1:\" and 44 characters of base 64"},
  };
  for (const Wanted& wanted : all) {
    section.require(section.text(wanted.key, wanted.value), wanted.key);
    if (wanted.value.empty() || !wanted.valid(wanted.value))
      section.refuse(wanted.key, wanted.otherwise);
  }
  if (section.text("package", program.package) && !is_path(program.package))
    section.refuse("package", "is not a folder beneath the module");
  section.texts("without", program.without);
  for (const std::string& path : program.without)
    if (!is_path(path)) section.refuse("without", "\"" + path + "\" is no file of a module");
  std::vector<TomlSection> changes = section.sections("change");
  if (changes.size() > kMaxChanges) section.refuse("change", "there are more than 16");
  for (const TomlSection& change : changes) program.changes.push_back(read_change(change));
  if (section.text("stamp", program.stamp) && !is_module(program.stamp))
    section.refuse("stamp", "is not the path of a variable");
  if (section.text("otherwise", program.otherwise) && !is_template_name(program.otherwise))
    section.refuse("otherwise", "is not the name of a template");
  section.finish();
  return program;
}

}  // namespace atl::store
