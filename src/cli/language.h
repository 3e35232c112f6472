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
  // Words of a command that runs code, before the code; none: it is put into a file first.
  std::span<const char* const> run_code;
  // Words of a command that runs a file, before its path; of a compiled one, all of them.
  std::span<const char* const> run_file;
  // Words of the command that makes of a file what is run, before its path; none: nothing does.
  std::span<const char* const> compile = {};
  // What stands between code and its arguments: bash and node take the first as the program's name.
  std::string_view code_name = {};
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
// The command of the exec before it; empty when there is nothing to compile.
std::vector<std::string> compile_command_of(const Language& language, const std::string& path);

}  // namespace atl::cli
