#include "sandbox/context_language.h"

#include "sandbox/runtimes.h"
#include "sandbox/speech.h"

namespace atl::sandbox {

namespace {

// For a shell, which would be slow to take a line of speech apart: it is told in its own words.
std::string shell_quoted(std::string_view text) {
  std::string word = "'";
  for (char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  word += '\'';
  return word;
}

// At the top level of the shell, so that what the code declares lasts; without the shell's own
// input, which is what we tell it. The shell runs none of the line before it has read all of it, so
// "begun" says that an interrupt takes nothing of the line away.
std::string shell_line(const store::RunRow& run, const std::vector<std::string>& variables) {
  std::string number = std::to_string(run.number);
  std::string line = "_atoll_current=" + number + "; ";
  line += "builtin printf 'begun\\t" + number + "\\n' >&5; ";
  for (const std::string& variable : variables)
    line += "_atoll_with " + shell_quoted(variable) + "; ";
  line += "eval " + shell_quoted(run.code) + " </dev/null 5>&-; _atoll_end $?\n";
  return line;
}

}  // namespace

std::optional<std::string> context_language(std::string_view name) {
  if (name == "python" || name == "py") return "python";
  if (name == "javascript" || name == "js") return "javascript";
  if (name == "typescript" || name == "ts") return "typescript";
  if (name == "bash" || name == "sh") return "bash";
  return std::nullopt;
}

std::vector<std::string> interpreter_of(std::string_view language) {
  if (language == "python") return {"python3", "-c", std::string(python_context_runtime())};
  // Only an interactive shell keeps its state when a command is interrupted.
  if (language == "bash") return {"bash", "--norc", "--noprofile", "--noediting", "-i"};
  return {"node", "--experimental-vm-modules", "--expose-internals", "--no-warnings",
          "-e",   std::string(node_runtime()), std::string(language)};
}

std::string joined_variables(const std::vector<std::string>& variables) {
  std::string joined;
  for (const std::string& variable : variables) (joined += variable) += '\0';
  return joined;
}

std::vector<std::string> split_variables(std::string_view joined) {
  std::vector<std::string> variables;
  while (!joined.empty()) {
    size_t end = std::min(joined.find('\0'), joined.size());
    variables.emplace_back(joined.substr(0, end));
    joined.remove_prefix(std::min(end + 1, joined.size()));
  }
  return variables;
}

std::string start_message(std::string_view language, const std::vector<std::string>& environment) {
  // A shell is started with it.
  if (language == "bash") return std::string(bash_runtime());
  std::vector<std::string_view> fields{"start"};
  fields.insert(fields.end(), environment.begin(), environment.end());
  return speech_line(fields);
}

std::string run_message(std::string_view language, const store::RunRow& run) {
  std::string number = std::to_string(run.number);
  std::vector<std::string> variables = split_variables(run.environment);
  if (language == "bash") return shell_line(run, variables);
  std::vector<std::string_view> fields{"run", number, run.code};
  fields.insert(fields.end(), variables.begin(), variables.end());
  return speech_line(fields);
}

}  // namespace atl::sandbox
