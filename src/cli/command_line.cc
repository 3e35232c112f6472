#include "cli/command_line.h"

#include <algorithm>
#include <sstream>

#include <CLI/CLI.hpp>

#include "cli/duration.h"
#include "cli/size.h"

namespace atl::cli {
namespace {

// What CLI11 writes into; turned into typed values when the whole line is known to be well-formed.
struct Raw {
  std::string state_directory;
  ServerChoice server;
  bool json = false;

  bool detach = false;
  bool allow_remote = false;
  std::string listen = kDefaultListen;

  std::string directory;
  std::string template_name = "python";
  std::string code;
  std::string file = "-";
  std::string timeout;
  std::string cpu_time, output_limit, on_output_limit;
  std::string memory, disk, disk_rate, on_oom, ttl, idle_ttl;
  std::optional<double> cpu;
  std::optional<uint32_t> pids, open_files;
  std::vector<std::string> require;
  bool raw = false;
  bool verbose = false;
  std::string id;
  std::vector<std::string> ids;
  std::vector<std::string> command;
  std::string public_key;
  std::string tenant;
  std::string key_name;
  bool list = false;
  std::vector<std::string> only;
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
  add_command(app, "doctor", "Say what this host offers and what to change; best as root");
  CLI::App* key = add_command(app, "key", "API keys")->require_subcommand(1);
  add_command(*key, "show-local", "Print the key of this host (root)");
  CLI::App* create = add_command(*key, "create", "Make a key and print it, this once");
  create->add_option("--tenant", raw.tenant, "Whose key; made if new (default: local)")
      ->type_name("NAME");
  create->add_option("--name", raw.key_name, "What to call the key")->type_name("TEXT");
  add_command(*key, "ls", "List the keys in force");
  CLI::App* revoke = add_command(*key, "revoke", "End a key");
  revoke->add_option("id", raw.id, "The id that `atoll key ls` shows")
      ->required()
      ->type_name("KEY");
  CLI::App* templates = add_command(app, "template", "Templates")->require_subcommand(1);
  CLI::App* add = add_command(*templates, "add", "Install a built template (root)");
  add->add_option("directory", raw.directory, "What tools/build-template made")
      ->required()
      ->type_name("DIR");
  add_command(*templates, "ls", "List the installed templates");
  CLI::App* selftest = add_command(app, "selftest", "Attack this host's Atoll from inside (root)");
  selftest->add_option("--only", raw.only, "Run only these attacks")->type_name("NAME");
  selftest->add_flag("--list", raw.list, "List the attacks and run none");
  add_command(app, "version", "Print the version");
}

void add_exec_limits(CLI::App& command, Raw& raw) {
  command.add_option("--cpu-time", raw.cpu_time, "Kill a program that has used this much cpu time")
      ->type_name("TIME");
  command.add_option("--output-limit", raw.output_limit, "Keep this much of each stream: 64MiB")
      ->type_name("SIZE");
  command.add_option("--open-files", raw.open_files, "Files that a process may have open")
      ->type_name("N");
}

void add_sandbox_options(CLI::App& command, Raw& raw) {
  command.add_option("-t,--template", raw.template_name, "The template")->capture_default_str();
  command.add_option("--cpu", raw.cpu, "Cores: 0.5, 2")->type_name("N");
  command.add_option("--memory", raw.memory, "Memory: 512MiB")->type_name("SIZE");
  command.add_option("--pids", raw.pids, "Processes and threads")->type_name("N");
  command.add_option("--disk", raw.disk, "Disk: 1GiB")->type_name("SIZE");
  command.add_option("--disk-rate", raw.disk_rate, "Disk bytes a second, read and written each")
      ->type_name("SIZE");
  add_exec_limits(command, raw);
  command.add_option("--on-oom", raw.on_oom, "What an out-of-memory kill ends")
      ->check(CLI::IsMember({"exec", "sandbox"}));
  command.add_option("--require", raw.require, "Refuse without this protection; may be repeated")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--ttl", raw.ttl, "Delete the sandbox after this time")->type_name("TIME");
  command.add_option("--idle-ttl", raw.idle_ttl, "Delete it when nothing ran for this time")
      ->type_name("TIME");
}

void add_output_options(CLI::App& command, Raw& raw) {
  command.add_option("--timeout", raw.timeout, "Kill the program after this time: 500ms, 1s, 2m")
      ->type_name("TIME");
  command.add_option("--on-output-limit", raw.on_output_limit, "At the output limit: cut or kill")
      ->check(CLI::IsMember({"cut", "kill"}));
  command.add_flag("--raw", raw.raw, "Let the program's control sequences reach the terminal");
  command.add_flag("-v,--verbose", raw.verbose, "Print verdict, usage and timings to stderr");
}

void add_sandbox_commands(CLI::App& app, Raw& raw) {
  CLI::App* run = add_command(app, "run", "Run code in a sandbox of its own, then remove it");
  add_sandbox_options(*run, raw);
  CLI::Option* code = run->add_option("-c,--code", raw.code, "The code itself")->type_name("CODE");
  run->add_option("file", raw.file, "A file with the code; - is standard input")
      ->capture_default_str()
      ->excludes(code);
  add_output_options(*run, raw);

  CLI::App* create = add_command(app, "create", "Create a sandbox and print its id");
  add_sandbox_options(*create, raw);
  add_command(app, "ls", "List sandboxes");
  add_command(app, "show", "Show a sandbox")->add_option("id", raw.id, "Its id")->required();
  add_command(app, "rm", "Remove sandboxes")->add_option("ids", raw.ids, "Their ids")->required();
  CLI::App* exec = add_command(app, "exec", "Run a command in a sandbox: exec ID -- COMMAND ...");
  exec->add_option("id", raw.id, "The sandbox")->required();
  exec->add_option("command", raw.command, "The command and its arguments");
  add_exec_limits(*exec, raw);
  add_output_options(*exec, raw);
}

void add_receipt_commands(CLI::App& app, Raw& raw) {
  CLI::App* receipt = add_command(app, "receipt", "What was enforced")->require_subcommand(1);
  add_command(*receipt, "show", "Show the receipt of a sandbox; --json has the signature")
      ->add_option("id", raw.id, "The sandbox")
      ->required();
  CLI::App* verify = add_command(*receipt, "verify", "Check who signed a receipt");
  verify->add_option("file", raw.file, "What `receipt show --json` printed; - is standard input")
      ->capture_default_str();
  verify->add_option("--public-key", raw.public_key, "The signer's key (default: this host's)")
      ->type_name("FILE|KEY");
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

std::optional<std::string> text_of(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

Result<std::optional<std::chrono::milliseconds>> duration_of(const std::string& text) {
  if (text.empty()) return std::optional<std::chrono::milliseconds>();
  ATOLL_TRY(std::chrono::milliseconds duration, parse_duration(text));
  return std::optional(duration);
}

Result<std::optional<uint64_t>> size_of(const std::string& text) {
  if (text.empty()) return std::optional<uint64_t>();
  ATOLL_TRY(uint64_t size, parse_size(text));
  return std::optional(size);
}

Result<ExecLimits> exec_limits_of(const Raw& raw) {
  ExecLimits limits;
  ATOLL_TRY(limits.cpu_time, duration_of(raw.cpu_time));
  ATOLL_TRY(limits.output_bytes, size_of(raw.output_limit));
  limits.open_files = raw.open_files;
  return limits;
}

Result<SandboxOptions> sandbox_options_of(const Raw& raw) {
  SandboxOptions options;
  options.template_name = raw.template_name;
  options.cpu = raw.cpu;
  ATOLL_TRY(options.memory_bytes, size_of(raw.memory));
  options.pids = raw.pids;
  ATOLL_TRY(options.disk_bytes, size_of(raw.disk));
  ATOLL_TRY(options.disk_bytes_per_second, size_of(raw.disk_rate));
  ATOLL_TRY(options.exec, exec_limits_of(raw));
  options.on_oom = text_of(raw.on_oom);
  options.require = raw.require;
  ATOLL_TRY(options.ttl, duration_of(raw.ttl));
  ATOLL_TRY(options.idle_ttl, duration_of(raw.idle_ttl));
  return options;
}

ShowOutput show_of(const Raw& raw) {
  return {.mode = raw.raw ? OutputMode::kRaw : OutputMode::kSafe,
          .verbosity = raw.verbose ? Verbosity::kVerbose : Verbosity::kQuiet};
}

Result<Command> make_run(const Raw& raw, const CLI::App& run) {
  RunCommand command;
  ATOLL_TRY(command.sandbox, sandbox_options_of(raw));
  command.on_output_limit = text_of(raw.on_output_limit);
  if (run.count("--code") > 0) command.code = raw.code;
  command.file = raw.file;
  ATOLL_TRY(command.timeout, read_timeout(raw));
  command.show = show_of(raw);
  return Command(std::move(command));
}

Result<Command> make_create(const Raw& raw) {
  CreateCommand command;
  ATOLL_TRY(command.sandbox, sandbox_options_of(raw));
  return Command(std::move(command));
}

Result<Command> make_exec(const Raw& raw) {
  if (raw.command.empty()) return Error(Code::kInvalid, "exec needs a command: exec ID -- COMMAND");
  ExecCommand command;
  command.id = raw.id;
  command.command = raw.command;
  command.show = show_of(raw);
  ATOLL_TRY(command.limits, exec_limits_of(raw));
  command.on_output_limit = text_of(raw.on_output_limit);
  ATOLL_TRY(command.timeout, read_timeout(raw));
  return Command(std::move(command));
}

Command make_key(const Raw& raw, const CLI::App& chosen) {
  if (chosen.get_name() == "create") return CreateKeyCommand{raw.tenant, raw.key_name};
  if (chosen.get_name() == "ls") return ListKeysCommand{};
  if (chosen.get_name() == "revoke") return RevokeKeyCommand{raw.id};
  return ShowKeyCommand{};
}

Result<Command> make_receipt(const Raw& raw, const CLI::App& chosen) {
  if (chosen.get_name() == "show") return Command(ShowReceiptCommand{raw.id});
  return Command(VerifyReceiptCommand{raw.file, raw.public_key});
}

Command make_selftest(const Raw& raw) {
  using Mode = SelftestCommand::Mode;
  return SelftestCommand{raw.list ? Mode::kList : Mode::kRun, raw.only};
}

Result<Command> make_command(const CLI::App& app, const Raw& raw) {
  const CLI::App* chosen = app.get_subcommands().front();
  const std::string& name = chosen->get_name();
  if (name == "up") return make_up(raw);
  if (name == "run") return make_run(raw, *chosen);
  if (name == "exec") return make_exec(raw);
  if (name == "down") return Command(DownCommand{});
  if (name == "status") return Command(StatusCommand{});
  if (name == "doctor") return Command(DoctorCommand{});
  if (name == "key") return make_key(raw, *chosen->get_subcommands().front());
  if (name == "create") return make_create(raw);
  if (name == "ls") return Command(ListCommand{});
  if (name == "show") return Command(ShowCommand{raw.id});
  if (name == "rm") return Command(RemoveCommand{raw.ids});
  if (name == "selftest") return make_selftest(raw);
  if (name == "version") return Command(VersionCommand{});
  if (name == "receipt") return make_receipt(raw, *chosen->get_subcommands().front());
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
  add_receipt_commands(app, raw);
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
