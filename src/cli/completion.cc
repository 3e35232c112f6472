#include "cli/completion.h"

#include <stdio.h>

#include <CLI/CLI.hpp>

#include "cli/command_table.h"
#include "cli/readable.h"

namespace atl::cli {
namespace {

struct Option {
  std::vector<std::string> names;  // with their dashes
  std::string description;
  // What stands behind it: "" for nothing, "file", "any", or words to choose from.
  std::string value;
};

struct Completable {
  std::string name;  // "" for what stands before any command
  std::string summary;
  std::vector<std::string> words;  // the commands beneath it
  std::vector<Option> options;
  bool takes_sandboxes = false;
  bool takes_files = false;
  std::string choices;  // of its argument
};

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// What a type name such as FILE, DIR or {cut,kill} says about the value.
std::string value_kind(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  std::string type = option.get_type_name();
  size_t brace = type.find('{');
  if (brace != type.npos) {
    std::string words = type.substr(brace + 1, type.find('}') - brace - 1);
    for (char& c : words)
      if (c == ',') c = ' ';
    return words;
  }
  bool is_path =
      type.find("FILE") != type.npos || type.find("DIR") != type.npos || type.starts_with("LOCAL");
  return is_path ? "file" : "any";
}

void add_option(Completable& command, const CLI::Option& option) {
  if (option.get_positional()) {
    std::string type = option.get_type_name();
    if (type.find("ID") != type.npos) command.takes_sandboxes = true;
    std::string kind = value_kind(option);
    if (kind == "file") command.takes_files = true;
    // cp takes both.
    if (kind == "file" && option.get_description().find("ID:PATH") != std::string::npos)
      command.takes_sandboxes = true;
    if (kind != "file" && kind != "any") command.choices = kind;
    return;
  }
  Option made{{}, option.get_description(), value_kind(option)};
  for (const std::string& name : option.get_snames()) made.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) made.names.push_back("--" + name);
  command.options.push_back(std::move(made));
}

void describe(const CLI::App& app, const std::string& name, std::vector<Completable>& all) {
  Completable command;
  command.name = name;
  command.summary = app.get_description();
  for (const CLI::Option* option : app.get_options()) add_option(command, *option);
  auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* sub : subcommands) command.words.push_back(sub->get_name());
  if (name.empty()) command.words.push_back("help");
  all.push_back(std::move(command));
  for (const CLI::App* sub : subcommands)
    describe(*sub, name.empty() ? sub->get_name() : name + " " + sub->get_name(), all);
}

std::vector<Completable> describe_all() {
  Typed typed;
  std::unique_ptr<CLI::App> app = make_parser(typed);
  std::vector<Completable> all;
  describe(*app, "", all);
  return all;
}

void add_names(std::vector<std::string>& names, const Completable& command) {
  for (const Option& option : command.options)
    for (const std::string& name : option.names)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

std::vector<std::string> option_names(const Completable& command, const Completable& global) {
  std::vector<std::string> names;
  add_names(names, command);
  add_names(names, global);
  return names;
}

// Quoted for sh and fish: '...' with no way out of it.
std::string in_quotes(const std::string& text) {
  std::string out = "'";
  for (char c : text)
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  return out + "'";
}

// Ids and names; a key or a server that does not answer completes nothing.
constexpr const char* kListSandboxes =
    "atoll ls --all 2>/dev/null | awk 'NR > 1 { print $1; if ($2 != \"-\") print $2 }'";

std::string bash_values(const std::string& command, const Option& option) {
  std::string text;
  if (option.value.empty()) return text;
  for (const std::string& name : option.names)
    text +=
        "    " + in_quotes(command + " " + name) + ") echo " + in_quotes(option.value) + " ;;\n";
  return text;
}

// One line for each command: its options, what may stand behind them, and what its arguments are.
std::string bash_tables(const std::vector<Completable>& all) {
  std::string words = "_atoll_words() {\n  case \"$1\" in\n";
  std::string options = "_atoll_options() {\n  case \"$1\" in\n";
  std::string values = "_atoll_value() {\n  case \"$1 $2\" in\n";
  std::string arguments = "_atoll_arguments() {\n  case \"$1\" in\n";
  for (const Completable& command : all) {
    std::string name = in_quotes(command.name);
    if (!command.words.empty())
      words += "    " + name + ") echo " + in_quotes(joined(command.words, " ")) + " ;;\n";
    options += "    " + name + ") echo " +
               in_quotes(joined(option_names(command, all.front()), " ")) + " ;;\n";
    for (const Option& option : command.options) values += bash_values(command.name, option);
    std::string kinds = command.choices;
    if (command.takes_sandboxes) kinds += " @sandboxes";
    if (command.takes_files) kinds += " @files";
    if (!kinds.empty()) arguments += "    " + name + ") echo " + in_quotes(kinds) + " ;;\n";
  }
  std::string end = "  esac\n}\n";
  return words + end + options + end + values + end + arguments + end;
}

constexpr const char* kBashEngine = R"bash(
_atoll_sandboxes() {
  @LIST@
}

_atoll_value_of() {
  local kind
  kind=$(_atoll_value "$1" "$2")
  [[ -n $kind ]] || kind=$(_atoll_value '' "$2")
  echo "$kind"
}

_atoll() {
  local current=${COMP_WORDS[COMP_CWORD]} command='' index word kind
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; ++index)); do
    word=${COMP_WORDS[index]}
    if [[ $word == -- ]]; then
      COMPREPLY=($(compgen -f -- "$current"))
      return
    elif [[ $word == -* ]]; then
      [[ -z $(_atoll_value_of "$command" "$word") ]] || ((++index))
    elif [[ -n $(_atoll_words "$command") ]]; then
      [[ $word == help ]] || command="${command:+$command }$word"
    fi
  done
  # The loop ran over the current word: it is the value of the option before it.
  if ((index > COMP_CWORD && COMP_CWORD > 1)); then
    kind=$(_atoll_value_of "$command" "${COMP_WORDS[COMP_CWORD - 1]}")
    case $kind in
      file) COMPREPLY=($(compgen -f -- "$current")) ;;
      any) ;;
      *) COMPREPLY=($(compgen -W "$kind" -- "$current")) ;;
    esac
    return
  fi
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$(_atoll_options "$command")" -- "$current"))
    return
  fi
  kind=$(_atoll_words "$command")
  if [[ -n $kind ]]; then
    COMPREPLY=($(compgen -W "$kind" -- "$current"))
    return
  fi
  for kind in $(_atoll_arguments "$command"); do
    case $kind in
      @sandboxes) COMPREPLY+=($(compgen -W "$(_atoll_sandboxes)" -- "$current")) ;;
      @files) COMPREPLY+=($(compgen -f -- "$current")) ;;
      *) COMPREPLY+=($(compgen -W "$kind" -- "$current")) ;;
    esac
  done
}
)bash";

std::string bash_functions() {
  std::string engine = kBashEngine;
  engine.replace(engine.find("@LIST@"), 6, kListSandboxes);
  return bash_tables(describe_all()) + engine;
}

// A condition of fish that holds behind the words of a command.
std::string fish_condition(const std::string& command) {
  size_t space = command.find(' ');
  if (space == command.npos) return "__fish_seen_subcommand_from " + command;
  return "__fish_seen_subcommand_from " + command.substr(0, space) +
         "; and __fish_seen_subcommand_from " + command.substr(space + 1);
}

std::string fish_option(const Option& option) {
  std::string line;
  for (const std::string& name : option.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (option.value == "file") line += " -r -F";
  if (option.value == "any") line += " -x";
  if (!option.value.empty() && option.value != "file" && option.value != "any")
    line += " -x -a " + in_quotes(option.value);
  return line + " -d " + in_quotes(option.description);
}

std::string fish_lines(const Completable& command) {
  std::string condition =
      command.name.empty() ? "" : " -n " + in_quotes(fish_condition(command.name));
  std::string text;
  for (const Option& option : command.options)
    text += "complete -c atoll" + condition + fish_option(option) + "\n";
  if (command.takes_sandboxes)
    text += "complete -c atoll" + condition + " -f -a '(__atoll_sandboxes)'\n";
  if (command.takes_files) text += "complete -c atoll" + condition + " -F\n";
  if (!command.choices.empty())
    text += "complete -c atoll" + condition + " -f -a " + in_quotes(command.choices) + "\n";
  return text;
}

}  // namespace

std::string bash_completion() {
  return "# Completion of atoll for bash: source <(atoll completion bash)\n" + bash_functions() +
         "complete -F _atoll atoll\n";
}

// zsh runs the functions of bash.
std::string zsh_completion() {
  return "#compdef atoll\n# Completion of atoll for zsh.\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash_functions() + "complete -F _atoll atoll\n";
}

std::string fish_completion() {
  std::vector<Completable> all = describe_all();
  std::string text = "# Completion of atoll for fish.\nfunction __atoll_sandboxes\n  " +
                     std::string(kListSandboxes) + "\nend\ncomplete -c atoll -f\n";
  for (const Completable& command : all) {
    size_t space = command.name.find(' ');
    std::string last = command.name.substr(space == command.name.npos ? 0 : space + 1);
    std::string condition = "__fish_use_subcommand";
    if (space != command.name.npos)
      condition = "__fish_seen_subcommand_from " + command.name.substr(0, space);
    if (!command.name.empty())
      text += "complete -c atoll -n " + in_quotes(condition) + " -a " + in_quotes(last) + " -d " +
              in_quotes(command.summary) + "\n";
    text += fish_lines(command);
  }
  return text;
}

Result<int> run_command(const CommandLine& line, const CompletionCommand& completion) {
  std::string script = completion.shell == "bash"  ? bash_completion()
                       : completion.shell == "zsh" ? zsh_completion()
                                                   : fish_completion();
  if (line.format == Format::kJson)
    print_json(boost::json::object{{"shell", completion.shell}, {"script", script}});
  else
    printf("%s", script.c_str());
  return 0;
}

}  // namespace atl::cli
