#include "sudo/command_line.h"

#include <algorithm>

namespace atl::sudo {
namespace {

using Mode = CommandLine::Mode;

constexpr uint32_t kUserId = 1000;

// The agent gives these to a program that has none: they are the command's user's.
constexpr std::string_view kOfTheUser[] = {"HOME=", "USER=", "LOGNAME=", "SHELL="};

Error invalid(std::string_view what, std::string_view value) {
  return Error(Code::kInvalid, std::string(what) + " " + std::string(value));
}

// Long options by the letter that does the same; those with a value end with "=".
struct LongOption {
  std::string_view name;
  char letter;
};
constexpr LongOption kLongOptions[] = {{"askpass", 'A'},
                                       {"background", 'b'},
                                       {"chdir=", 'D'},
                                       {"help", 'h'},
                                       {"list", 'l'},
                                       {"login", 'i'},
                                       {"preserve-env", 'E'},
                                       {"set-home", 'H'},
                                       {"non-interactive", 'n'},
                                       {"preserve-groups", 'P'},
                                       {"prompt=", 'p'},
                                       {"remove-timestamp", 'K'},
                                       {"reset-timestamp", 'k'},
                                       {"shell", 's'},
                                       {"stdin", 'S'},
                                       {"user=", 'u'},
                                       {"validate", 'v'},
                                       {"version", 'V'}};

// Cuts the arguments into options with their values.
class Parser {
 public:
  explicit Parser(std::span<char* const> arguments) : left_(arguments) {}

  Result<CommandLine> parse() {
    while (!left_.empty() && left_[0][0] == '-' && left_[0][1] != '\0') {
      std::string_view word = left_[0];
      left_ = left_.subspan(1);
      if (word == "--") break;
      ATOLL_TRY_VOID(word.starts_with("--") ? take_long(word.substr(2)) : take(word.substr(1)));
    }
    while (!left_.empty() && is_variable(left_[0])) line_.variables.push_back(next());
    while (!left_.empty()) line_.command.push_back(next());
    return finish();
  }

 private:
  std::string next() {
    std::string word = left_[0];
    left_ = left_.subspan(1);
    return word;
  }

  static bool is_variable(std::string_view word) {
    size_t equals = word.find('=');
    return equals != word.npos && equals > 0 && word.substr(0, equals).find('/') == word.npos;
  }

  Result<void> take(std::string_view letters) {
    while (!letters.empty()) {
      char letter = letters[0];
      letters.remove_prefix(1);
      if (std::string_view("uDp").find(letter) == std::string_view::npos) {
        ATOLL_TRY_VOID(take_flag(letter));
        continue;
      }
      if (letters.empty() && left_.empty()) return invalid("no value for option", {&letter, 1});
      return take_value(letter, letters.empty() ? next() : std::string(letters));
    }
    return {};
  }

  Result<void> take_long(std::string_view word) {
    size_t equals = word.find('=');
    std::string_view name = word.substr(0, equals);
    for (const LongOption& option : kLongOptions) {
      bool has_value = option.name.ends_with('=');
      if (name != option.name.substr(0, option.name.size() - has_value)) continue;
      // --preserve-env=LIST is the one whose value may be left out; all is preserved anyway.
      if (!has_value) return take_flag(option.letter);
      if (equals != word.npos)
        return take_value(option.letter, std::string(word.substr(equals + 1)));
      if (left_.empty()) return invalid("no value for option", word);
      return take_value(option.letter, next());
    }
    return invalid("unknown option", word);
  }

  Result<void> take_flag(char letter) {
    constexpr std::string_view kIgnored = "AEHPSn";
    if (letter == 's')
      line_.mode = Mode::kShell;
    else if (letter == 'i')
      line_.mode = Mode::kLogin;
    else if (letter == 'h')
      line_.mode = Mode::kHelp;
    else if (letter == 'V')
      line_.mode = Mode::kVersion;
    else if (letter == 'v' || letter == 'K' || letter == 'l')
      line_.mode = Mode::kNothing;
    else if (letter == 'k')
      forgets_ = true;
    else if (kIgnored.find(letter) == kIgnored.npos)
      return invalid("unknown option", {&letter, 1});
    return {};
  }

  Result<void> take_value(char letter, std::string value) {
    if (letter == 'D') {
      line_.directory = std::move(value);
      return {};
    }
    if (letter != 'u') return {};
    // "#5" is a number; without it the agent would take digits for one too.
    bool number = value.starts_with('#');
    bool digits = value.find_first_not_of("0123456789", number) == value.npos;
    if (number != digits || value.size() == size_t{number} || value.size() > agent::kMaxUserBytes)
      return invalid("unknown user", value);
    line_.user = value.substr(number);
    return {};
  }

  Result<CommandLine> finish() {
    if (line_.mode != Mode::kCommand || !line_.command.empty()) return std::move(line_);
    if (!forgets_) return invalid("no", "command");
    line_.mode = Mode::kNothing;
    return std::move(line_);
  }

  std::span<char* const> left_;
  CommandLine line_;
  bool forgets_ = false;  // -k: alone, there is nothing to do
};

// `name` ends with '='.
void remove_variable(std::vector<std::string>& environment, std::string_view name) {
  std::erase_if(environment, [name](const auto& present) { return present.starts_with(name); });
}

void set_variable(std::vector<std::string>& environment, std::string variable) {
  remove_variable(environment, variable.substr(0, variable.find('=') + 1));
  environment.push_back(std::move(variable));
}

std::string find_variable(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& variable : environment)
    if (variable.starts_with(name)) return variable.substr(name.size());
  return "";
}

// Each argument stays one word of the script.
std::string as_script(const std::vector<std::string>& command) {
  std::string script;
  for (const std::string& argument : command) {
    if (!script.empty()) script += ' ';
    script += '\'';
    for (char c : argument) script += c == '\'' ? std::string("'\\''") : std::string(1, c);
    script += '\'';
  }
  return script;
}

std::vector<std::string> command_of(const CommandLine& line, const Caller& caller) {
  if (line.mode == Mode::kCommand) return line.command;
  std::string shell = find_variable(caller.environment, "SHELL=");
  if (line.mode == Mode::kLogin || shell.empty()) shell = "/bin/sh";
  std::vector<std::string> command = {shell};
  if (line.mode == Mode::kLogin) command.push_back("-l");
  if (!line.command.empty()) {
    command.push_back("-c");
    command.push_back(as_script(line.command));
  }
  return command;
}

}  // namespace

Result<CommandLine> parse_command_line(std::span<char* const> arguments) {
  return Parser(arguments).parse();
}

agent::Start make_start(const CommandLine& line, const Caller& caller) {
  std::string callers_name = caller.uid == 0         ? "root"
                             : caller.uid == kUserId ? "user"
                                                     : std::to_string(caller.uid);
  agent::Start start;
  start.user = line.user;
  start.arguments = command_of(line, caller);
  start.directory = line.directory.value_or(caller.directory);
  if (!start.directory.starts_with('/')) start.directory = caller.directory + "/" + start.directory;
  if (line.mode == Mode::kLogin && !line.directory) start.directory = "";  // the user's home
  start.environment = caller.environment;
  for (std::string_view name : kOfTheUser) remove_variable(start.environment, name);
  set_variable(start.environment, "SUDO_USER=" + callers_name);
  set_variable(start.environment, "SUDO_UID=" + std::to_string(caller.uid));
  set_variable(start.environment, "SUDO_GID=" + std::to_string(caller.gid));
  for (const std::string& variable : line.variables) set_variable(start.environment, variable);
  return start;
}

}  // namespace atl::sudo
