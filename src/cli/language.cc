#include "cli/language.h"

namespace atl::cli {
namespace {

constexpr const char* kPythonCode[] = {"python3", "-c"};
constexpr const char* kPythonFile[] = {"python3"};
constexpr const char* kBashCode[] = {"bash", "-c"};
constexpr const char* kBashFile[] = {"bash"};
constexpr const char* kNodeCode[] = {"node", "-e"};
constexpr const char* kNodeFile[] = {"node"};
// What a compiler makes, in the built-in templates too.
constexpr const char* kCompiledFile[] = {"/tmp/main"};
constexpr const char* kCompileCpp[] = {"g++", "-std=c++20", "-O2", "-o", "/tmp/main"};
constexpr const char* kCompileC[] = {"gcc", "-std=c17", "-O2", "-o", "/tmp/main"};
constexpr const char* kCompileGo[] = {"env", "GO111MODULE=auto", "CGO_ENABLED=0", "go", "build",
                                      "-o",  "/tmp/main"};

constexpr Language kLanguages[] = {
    {"python", "python", ".py", "main.py", kPythonCode, kPythonFile},
    {"bash", "bash", ".sh", "main.sh", kBashCode, kBashFile, {}, "main.sh"},
    {"node", "node", ".js", "main.js", kNodeCode, kNodeFile, {}, "main.js"},
    {"node", "node", ".mjs", "main.mjs", kNodeCode, kNodeFile, {}, "main.mjs"},
    {"cpp", "cpp-algorithm", ".cpp", "main.cpp", {}, kCompiledFile, kCompileCpp},
    {"cpp", "cpp-algorithm", ".cc", "main.cc", {}, kCompiledFile, kCompileCpp},
    {"c", "cpp-algorithm", ".c", "main.c", {}, kCompiledFile, kCompileC},
    {"go", "go-algorithm", ".go", "main.go", {}, kCompiledFile, kCompileGo},
};

// Templates whose names do not begin with their language.
constexpr struct {
  std::string_view template_name, language;
} kOtherTemplates[] = {
    {"base", "python"}, {"code-interpreter-v1", "python"}, {"websearch-tools", "python"}};

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
  template_name = template_name.substr(0, template_name.find('@'));
  for (const auto& other : kOtherTemplates)
    if (other.template_name == template_name) return named(other.language);
  return named(template_name.substr(0, template_name.find('-')));
}

}  // namespace

Result<const Language*> find_language(const CodeSource& source) {
  for (const Language& language : kLanguages)
    if (source.file.ends_with(language.extension)) return &language;
  if (const Language* language = named(shebang_program(source.code))) return language;
  if (const Language* language = of_template(source.template_name)) return language;
  if (source.template_name.empty() && source.file.empty()) return named("python");
  std::string what = source.file.empty() ? "template " + source.template_name : source.file;
  return Error(
      Code::kInvalid,
      "nothing says which program runs " + what +
          "\n  remedy: name the file .py, .sh, .js, .cpp, .c or .go, begin it with #!, or use "
          "atoll create and atoll exec");
}

std::vector<std::string> command_of(const Language& language, const std::string& code,
                                    const std::string& path) {
  std::vector<std::string> command;
  for (const char* word : path.empty() ? language.run_code : language.run_file)
    command.emplace_back(word);
  if (path.empty()) command.push_back(code);
  if (path.empty() && !language.code_name.empty()) command.emplace_back(language.code_name);
  if (!path.empty() && language.compile.empty()) command.push_back(path);
  return command;
}

std::vector<std::string> compile_command_of(const Language& language, const std::string& path) {
  std::vector<std::string> command(language.compile.begin(), language.compile.end());
  if (!command.empty()) command.push_back(path);
  return command;
}

}  // namespace atl::cli
