#include "cli/command_line.h"

#include <algorithm>
#include <sstream>

#include <CLI/CLI.hpp>

#include "cli/duration.h"

namespace atl::cli {
namespace {

// What CLI11 writes into; turned into typed values when the whole line is known to be well-formed.
struct Raw {
  std::string state_directory;
  ServerChoice server;
  bool json = false;

  bool detach = false;
  bool allow_remote = false;
  std::string listen = "127.0.0.1:4700";

  std::string directory;
  std::string template_name = "python";
  std::string code;
  std::string file = "-";
  std::string timeout;
  bool raw = false;
  bool verbose = false;
  std::string id;
  std::vector<std::string> ids;
  std::vector<std::string> command;
};

void add_global_options(CLI::App& app, Raw& raw) {
  app.add_option("--state-dir", raw.state_directory,
                 "Keep state in DIR and sockets in DIR/run (default: /var/lib/atoll, /run/atoll)")
      ->type_name("DIR");
  app.add_option("--url", raw.server.url, "The server, as http://HOST:PORT (default: this host's)")
      ->envname("ATOLL_URL")
      ->type_name("URL");
  app.add_option("--key", raw.server.key, "The API key (default: this host's local key)")
      ->envname("ATOLL_KEY")
      ->type_name("KEY");
  app.add_flag("--json", raw.json, "Print JSON");
}

CLI::App* add_command(CLI::App& app, const char* name, const char* description) {
  return app.add_subcommand(name, description)->fallthrough();
}

void add_host_commands(CLI::App& app, Raw& raw) {
  CLI::App* up = add_command(app, "up", "Start Atoll on this host (root)");
  up->add_flag("--detach", raw.detach, "Return when it is ready and leave it running");
  up->add_option("--listen", raw.listen, "Where to listen")
      ->capture_default_str()
      ->type_name("IP:PORT");
  up->add_flag("--allow-remote", raw.allow_remote, "Allow an address that other hosts can reach");
  add_command(app, "down", "Stop Atoll and remove every sandbox (root)");
  add_command(app, "status", "Say what runs; exit code 3 when it is not ready");
  CLI::App* key = add_command(app, "key", "API keys")->require_subcommand(1);
  add_command(*key, "show-local", "Print the key of this host (root)");
  CLI::App* templates = add_command(app, "template", "Templates")->require_subcommand(1);
  CLI::App* add = add_command(*templates, "add", "Install a built template (root)");
  add->add_option("directory", raw.directory, "What tools/build-template made")
      ->required()
      ->type_name("DIR");
  add_command(*templates, "ls", "List the installed templates");
  add_command(app, "version", "Print the version");
}

void add_output_options(CLI::App& command, Raw& raw) {
  command.add_option("--timeout", raw.timeout, "Kill the program after this time: 500ms, 1s, 2m")
      ->type_name("TIME");
  command.add_flag("--raw", raw.raw, "Let the program's control sequences reach the terminal");
  command.add_flag("-v,--verbose", raw.verbose, "Print verdict, usage and timings to stderr");
}

void add_sandbox_commands(CLI::App& app, Raw& raw) {
  CLI::App* run = add_command(app, "run", "Run code in a sandbox of its own, then remove it");
  run->add_option("-t,--template", raw.template_name, "The template")->capture_default_str();
  CLI::Option* code = run->add_option("-c,--code", raw.code, "The code itself")->type_name("CODE");
  run->add_option("file", raw.file, "A file with the code; - is standard input")
      ->capture_default_str()
      ->excludes(code);
  add_output_options(*run, raw);

  CLI::App* create = add_command(app, "create", "Create a sandbox and print its id");
  create->add_option("-t,--template", raw.template_name, "The template")->capture_default_str();
  add_command(app, "ls", "List sandboxes");
  add_command(app, "show", "Show a sandbox")->add_option("id", raw.id, "Its id")->required();
  add_command(app, "rm", "Remove sandboxes")->add_option("ids", raw.ids, "Their ids")->required();
  CLI::App* exec = add_command(app, "exec", "Run a command in a sandbox: exec ID -- COMMAND ...");
  exec->add_option("id", raw.id, "The sandbox")->required();
  exec->add_option("command", raw.command, "The command and its arguments");
  add_output_options(*exec, raw);
}

Result<Command> make_up(const Raw& raw) {
  UpCommand up;
  if (raw.detach) up.mode = UpCommand::Mode::kDetached;
  if (raw.allow_remote) up.reach = UpCommand::Reach::kAnywhere;
  ATOLL_TRY(up.listen, ListenAddress::parse(raw.listen));
  if (!up.listen.is_loopback() && up.reach == UpCommand::Reach::kLoopbackOnly)
    return Error(Code::kInvalid, "other hosts could reach " + up.listen.string() +
                                     ": add --allow-remote if that is meant");
  return Command(std::move(up));
}

Result<std::chrono::milliseconds> read_timeout(const Raw& raw) {
  if (raw.timeout.empty()) return std::chrono::milliseconds(0);
  return parse_duration(raw.timeout);
}

ShowOutput show_of(const Raw& raw) {
  return {.mode = raw.raw ? OutputMode::kRaw : OutputMode::kSafe,
          .verbosity = raw.verbose ? Verbosity::kVerbose : Verbosity::kQuiet};
}

Result<Command> make_run(const Raw& raw, const CLI::App& run) {
  RunCommand command;
  command.template_name = raw.template_name;
  if (run.count("--code") > 0) command.code = raw.code;
  command.file = raw.file;
  ATOLL_TRY(command.timeout, read_timeout(raw));
  command.show = show_of(raw);
  return Command(std::move(command));
}

Result<Command> make_exec(const Raw& raw) {
  if (raw.command.empty()) return Error(Code::kInvalid, "exec needs a command: exec ID -- COMMAND");
  ExecCommand command{.id = raw.id, .command = raw.command, .show = show_of(raw)};
  ATOLL_TRY(command.timeout, read_timeout(raw));
  return Command(std::move(command));
}

Result<Command> make_command(const CLI::App& app, const Raw& raw) {
  const CLI::App* chosen = app.get_subcommands().front();
  const std::string& name = chosen->get_name();
  if (name == "up") return make_up(raw);
  if (name == "run") return make_run(raw, *chosen);
  if (name == "exec") return make_exec(raw);
  if (name == "down") return Command(DownCommand{});
  if (name == "status") return Command(StatusCommand{});
  if (name == "key") return Command(ShowKeyCommand{});
  if (name == "create") return Command(CreateCommand{raw.template_name});
  if (name == "ls") return Command(ListCommand{});
  if (name == "show") return Command(ShowCommand{raw.id});
  if (name == "rm") return Command(RemoveCommand{raw.ids});
  if (name == "version") return Command(VersionCommand{});
  ATOLL_CHECK(name == "template");
  if (chosen->get_subcommands().front()->get_name() == "ls") return Command(ListTemplatesCommand{});
  return Command(AddTemplateCommand{raw.directory});
}

// "help", "help X" and "--version" are what people try first.
void accept_spoken_forms(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments == std::vector<std::string>{"help"}) arguments = {"--help"};
  if (arguments[0] == "help") {
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
  }
  if (arguments[0] == "--version") arguments[0] = "version";
}

// Everything behind "--" is the command of exec, also what looks like an option of ours.
std::vector<std::string> take_exec_command(std::vector<std::string>& arguments) {
  auto separator = std::find(arguments.begin(), arguments.end(), "--");
  if (separator == arguments.end() || std::find(arguments.begin(), separator, "exec") == separator)
    return {};
  std::vector<std::string> command(separator + 1, arguments.end());
  arguments.erase(separator, arguments.end());
  return command;
}

}  // namespace

Result<CommandLine> parse_command_line(std::vector<std::string> arguments) {
  CLI::App app("Atoll gives every agent its own computer.", "atoll");
  Raw raw;
  app.require_subcommand(1);
  add_global_options(app, raw);
  add_sandbox_commands(app, raw);
  add_host_commands(app, raw);

  accept_spoken_forms(arguments);
  std::vector<std::string> exec_command = take_exec_command(arguments);
  CommandLine line;
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp& help) {
    std::ostringstream text;
    app.exit(help, text, text);
    line.command = HelpCommand{text.str()};
    return line;
  } catch (const CLI::ParseError& error) {
    // CLI11 says only that a command is missing when it does not know the one that was given.
    std::vector<std::string> unknown = app.remaining();
    if (app.get_subcommands().empty() && !unknown.empty())
      return Error(Code::kInvalid, "there is no command \"" + unknown.front() + "\"");
    return Error(Code::kInvalid, error.what());
  }
  raw.command.insert(raw.command.end(), exec_command.begin(), exec_command.end());
  ATOLL_TRY(line.command, make_command(app, raw));
  if (!raw.state_directory.empty()) line.places = Places::beneath(raw.state_directory);
  line.server = raw.server;
  line.format = raw.json ? Format::kJson : Format::kText;
  return line;
}

}  // namespace atl::cli
