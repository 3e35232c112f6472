// Which template and which program run a piece of code, by the name of its file, its first line or
// the name of the template.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl::cli {

struct Language {
  std::string_view name;
  std::string_view template_name;  // the one that is taken when the user names none
  std::string_view extension;
  std::string_view file_name;  // for code that has no file
  // Words of a command that runs code, and of one that runs a file: the code or the path comes
  // last. No words for code: it is put into a file first.
  std::span<const char* const> run_code;
  std::span<const char* const> run_file;
};

// What is known about the code before it is run.
struct CodeSource {
  std::string template_name;  // as the user said; may be empty
  std::string file;           // its path; empty when it has none
  std::string_view code;
};

// kInvalid with what to do when nothing tells.
Result<const Language*> find_language(const CodeSource& source);

// The kernel's limit of one argument (MAX_ARG_STRLEN) less its NUL.
inline constexpr size_t kMaxArgumentBytes = 131'071;

// The command of the exec. `path` is where the file is inside; empty: the code is an argument.
std::vector<std::string> command_of(const Language& language, const std::string& code,
                                    const std::string& path);

}  // namespace atl::cli
