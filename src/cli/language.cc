#include "cli/language.h"

namespace atl::cli {
namespace {

constexpr const char* kPythonCode[] = {"python3", "-c"};
constexpr const char* kPythonFile[] = {"python3"};
constexpr const char* kBashCode[] = {"bash", "-c"};
constexpr const char* kBashFile[] = {"bash"};
constexpr const char* kNodeCode[] = {"node", "-e"};
constexpr const char* kNodeFile[] = {"node"};
// $0 is the path: sh -c takes what follows the script as $0, $1, ...
constexpr const char* kCppFile[] = {
    "sh", "-c", "g++ -std=c++20 -O2 -o /tmp/program \"$0\" && exec /tmp/program \"$@\""};
constexpr const char* kGoFile[] = {"go", "run"};

constexpr Language kLanguages[] = {
    {"python", "python", ".py", "main.py", kPythonCode, kPythonFile},
    {"bash", "bash", ".sh", "main.sh", kBashCode, kBashFile},
    {"node", "node", ".js", "main.js", kNodeCode, kNodeFile},
    {"cpp", "cpp-algorithm", ".cpp", "main.cpp", {}, kCppFile},
    {"go", "go-algorithm", ".go", "main.go", {}, kGoFile},
};

// The program of "#!/usr/bin/env python3 -u" is python3, without its digits.
std::string shebang_program(std::string_view code) {
  if (!code.starts_with("#!")) return "";
  std::string_view line = code.substr(2, code.find('\n') - 2);
  std::string last;
  while (!line.empty()) {
    size_t begin = line.find_first_not_of(" \t\r");
    if (begin == line.npos) break;
    line.remove_prefix(begin);
    std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
    line.remove_prefix(word.size());
    last = word.substr(word.rfind('/') + 1);
    if (last != "env" && !last.starts_with('-')) break;
  }
  last.resize(last.find_last_not_of("0123456789.") + 1);
  return last == "sh" ? "bash" : last;
}

const Language* named(std::string_view name) {
  for (const Language& language : kLanguages)
    if (language.name == name) return &language;
  return nullptr;
}

// "python-data-science" speaks Python.
const Language* of_template(std::string_view template_name) {
  return named(template_name.substr(0, template_name.find_first_of("-@")));
}

}  // namespace

Result<const Language*> find_language(const CodeSource& source) {
  for (const Language& language : kLanguages)
    if (source.file.ends_with(language.extension)) return &language;
  if (const Language* language = named(shebang_program(source.code))) return language;
  if (const Language* language = of_template(source.template_name)) return language;
  if (source.template_name.empty() && source.file.empty()) return named("python");
  std::string what = source.file.empty() ? "template " + source.template_name : source.file;
  return Error(Code::kInvalid,
               "nothing says which program runs " + what +
                   "\n  remedy: name the file .py, .sh, .js, .cpp or .go, begin it with #!, or use "
                   "atoll create and atoll exec");
}

std::vector<std::string> command_of(const Language& language, const std::string& code,
                                    const std::string& path) {
  std::vector<std::string> command;
  for (const char* word : path.empty() ? language.run_code : language.run_file)
    command.emplace_back(word);
  command.push_back(path.empty() ? code : path);
  return command;
}

}  // namespace atl::cli
