#include "store/language_run.h"

#include <algorithm>
#include <initializer_list>

#include "store/toml_section.h"

namespace atl::store {
namespace {

constexpr std::string_view kCode = "{code}";
constexpr std::string_view kFile = "{file}";
constexpr std::string_view kFiles = "{files}";
constexpr size_t kMaxWords = 64;
constexpr size_t kMaxWordBytes = 4096;
constexpr size_t kMaxNameBytes = 64;

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool is_language(std::string_view text) {
  auto allowed = [](char c) { return is_lower_or_digit(c) || c == '+' || c == '-'; };
  return !text.empty() && text.size() <= 32 && text[0] >= 'a' && text[0] <= 'z' &&
         std::all_of(text.begin(), text.end(), allowed);
}

// A name and no path, which no program takes for an option.
bool is_file_name(std::string_view text) {
  auto allowed = [](char c) {
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kMaxNameBytes && text[0] != '-' && text[0] != '.' &&
         std::all_of(text.begin(), text.end(), allowed);
}

bool is_placeholder(std::string_view word) {
  return word.starts_with('{') && word.ends_with('}') &&
         std::all_of(word.begin() + 1, word.end() - 1, is_lower_or_digit);
}

void read_words(TomlSection& section, std::string_view key, std::vector<std::string>& words,
                std::initializer_list<std::string_view> known) {
  if (!section.texts(key, words)) return;
  if (words.empty() || words.size() > kMaxWords)
    return section.refuse(key, "must have 1 to 64 words");
  if (words.front().empty() || is_placeholder(words.front()))
    return section.refuse(key, "must begin with the name of a program");
  for (const std::string& word : words) {
    if (word.size() > kMaxWordBytes) return section.refuse(key, "has a word that is too long");
    if (is_placeholder(word) && std::find(known.begin(), known.end(), word) == known.end())
      return section.refuse(key, "knows no " + word);
  }
}

}  // namespace

LanguageRun read_language_run(TomlSection& section) {
  LanguageRun run;
  section.require(section.text("language", run.language), "language");
  if (!is_language(run.language)) section.refuse("language", "is not the name of a language");
  section.require(section.text("file", run.file), "file");
  if (!is_file_name(run.file)) section.refuse("file", "is not a plain name like \"main.py\"");
  read_words(section, "inline", run.inline_command, {kCode});
  read_words(section, "compile", run.compile, {kFile, kFiles});
  read_words(section, "command", run.command, {kFile, kFiles});
  section.require(!run.command.empty(), "command");
  auto& words = run.inline_command;
  if (!words.empty() && std::count(words.begin(), words.end(), kCode) != 1)
    section.refuse("inline", "must have the word {code} once");
  if (!words.empty() && !run.compile.empty())
    section.refuse("inline", "cannot be compiled: leave out one of inline and compile");
  section.finish();
  return run;
}

std::vector<std::string> words_with_code(const std::vector<std::string>& words,
                                         std::string_view code) {
  std::vector<std::string> command = words;
  std::replace(command.begin(), command.end(), std::string(kCode), std::string(code));
  return command;
}

std::vector<std::string> words_with_paths(const std::vector<std::string>& words,
                                          const RunPaths& paths) {
  std::vector<std::string> command;
  for (const std::string& word : words) {
    bool is_path = word == kFile || word == kFiles;
    command.push_back(is_path ? paths.entry : word);
    if (word != kFiles) continue;
    for (const std::string& other : paths.others)
      if (other != paths.entry && extension_of(other) == extension_of(paths.entry))
        command.push_back(other);
  }
  return command;
}

std::string_view extension_of(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  size_t dot = name.rfind('.');
  return dot == name.npos || dot == 0 ? std::string_view() : name.substr(dot);
}

}  // namespace atl::store
