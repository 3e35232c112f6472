// LanguageRun: how code in one language becomes a program of its template. Words of its commands
// that stand in braces are replaced, as whole words only, so that nothing is ever quoted:
//
//   {code}   the code itself, in `inline`
//   {file}   the path of the file that is run
//   {files}  that path and those of all other files of the run with the same extension
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace atl::store {

class TomlSection;

struct LanguageRun {
  std::string language;
  std::string file;                         // what code is called that has no file
  std::vector<std::string> inline_command;  // empty: code is put into a file first
  std::vector<std::string> compile;         // empty: there is nothing to compile
  std::vector<std::string> command;
};

// The files of a run inside.
struct RunPaths {
  std::string entry;
  std::vector<std::string> others;
};

// One entry of [[run]].
LanguageRun read_language_run(TomlSection& section);

std::vector<std::string> words_with_code(const std::vector<std::string>& words,
                                         std::string_view code);
std::vector<std::string> words_with_paths(const std::vector<std::string>& words,
                                          const RunPaths& paths);

// With its dot; empty when the name has none.
std::string_view extension_of(std::string_view path);

}  // namespace atl::store
