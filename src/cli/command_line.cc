#include "cli/command_line.h"

#include <algorithm>
#include <sstream>

#include <CLI/CLI.hpp>

#include "cli/command_table.h"

namespace atl::cli {
namespace {

using Words = std::vector<std::string>;

// "help", "help X" and "--version" are what people try first.
void accept_spoken_forms(Words& arguments) {
  if (arguments.empty() || arguments == Words{"help"}) arguments = {"--help"};
  if (arguments[0] == "help") {
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
  }
  if (arguments[0] == "--version") arguments[0] = "version";
}

// Everything behind "--" is for the program, also what looks like an option of ours.
Words take_program_words(Words& arguments) {
  auto separator = std::find(arguments.begin(), arguments.end(), "--");
  if (separator == arguments.end()) return {};
  Words command(separator + 1, arguments.end());
  arguments.erase(separator, arguments.end());
  return command;
}

const CommandEntry* find_entry(const std::vector<CommandGroup>& table, const std::string& name) {
  for (const CommandGroup& group : table)
    for (const CommandEntry& entry : group.entries)
      if (name == entry.name) return &entry;
  return nullptr;
}

struct Chosen {
  std::string name;
  const CLI::App* app;
};

Chosen chosen_command(const CLI::App& app) {
  const CLI::App* chosen = app.get_subcommands().front();
  std::string name = chosen->get_name();
  if (chosen->get_subcommands().empty()) return {name, chosen};
  chosen = chosen->get_subcommands().front();
  return {name + " " + chosen->get_name(), chosen};
}

// CLI11 says only that a command is missing when it does not know the one that was given.
Error explain_usage(const CLI::App& app, const CLI::ParseError& error) {
  std::string group;
  const CLI::App* innermost = &app;
  if (!app.get_subcommands().empty()) {
    innermost = app.get_subcommands().front();
    group = innermost->get_name() + " ";
  }
  Words unknown = app.remaining(true);
  bool wants_command = innermost->get_require_subcommand_min() > 0;
  if (!wants_command || !innermost->get_subcommands().empty() || unknown.empty())
    return Error(Code::kInvalid, error.what());
  std::string word = group + unknown.front();
  std::string message = "there is no command \"" + word + "\"";
  std::string nearest = nearest_command(word);
  if (!nearest.empty()) message += "; did you mean \"" + nearest + "\"?";
  return Error(Code::kInvalid, message);
}

}  // namespace

Result<CommandLine> parse_command_line(Words arguments) {
  Typed typed;
  std::unique_ptr<CLI::App> app = make_parser(typed);
  accept_spoken_forms(arguments);
  Words program_words = take_program_words(arguments);
  CommandLine line;
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
    app->parse(std::move(arguments));
  } catch (const CLI::CallForHelp& help) {
    std::ostringstream text;
    app->exit(help, text, text);
    std::string shown = text.str();
    if (!shown.ends_with('\n')) shown += '\n';
    line.command = HelpCommand{std::move(shown)};
    return line;
  } catch (const CLI::ParseError& error) {
    return explain_usage(*app, error);
  }
  Chosen chosen = chosen_command(*app);
  if (!program_words.empty() && chosen.name != "exec" && chosen.name != "run")
    return Error(Code::kInvalid, chosen.name + " runs no program: nothing may stand behind --");
  typed.command.insert(typed.command.end(), program_words.begin(), program_words.end());
  const CommandEntry* entry = find_entry(command_table(), chosen.name);
  ATOLL_CHECK(entry != nullptr);
  ATOLL_TRY(line.command, entry->make(typed, *chosen.app));
  if (!typed.state_directory.empty()) line.places = Places::beneath(typed.state_directory);
  line.server = typed.server;
  line.format = typed.json ? Format::kJson : Format::kText;
  return line;
}

}  // namespace atl::cli
