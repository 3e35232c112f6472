// The commands that run programs, as they are typed.
#include <algorithm>

#include <CLI/CLI.hpp>

#include "cli/command_table.h"
#include "cli/duration.h"

namespace atl::cli {
namespace {

constexpr std::chrono::hours kKeptIdleTime{1};
constexpr std::chrono::milliseconds kMinIdleTime{1000};  // the API takes no less

void add_exec_limits(CLI::App& app, Typed& typed) {
  app.add_option("--cpu-time", typed.cpu_time, "Kill a program that has used this much cpu time")
      ->type_name("TIME");
  app.add_option("--output-limit", typed.output_limit, "Keep this much of each stream: 64MiB")
      ->type_name("SIZE");
  app.add_option("--open-files", typed.open_files, "Files that a process may have open")
      ->type_name("N");
}

void add_sandbox_options(CLI::App& app, Typed& typed) {
  app.add_option("-t,--template", typed.template_name, "The template (default: python)")
      ->type_name("NAME");
  app.add_option("--isolation", typed.isolation,
                 "The wall, at least: jail, gvisor, microvm; auto: the strongest of its class")
      ->type_name("KIND");
  app.add_option("--cpu", typed.cpu, "Cores: 0.5, 2")->type_name("N");
  app.add_option("--memory", typed.memory, "Memory: 512MiB")->type_name("SIZE");
  app.add_option("--pids", typed.pids, "Processes and threads")->type_name("N");
  app.add_option("--disk", typed.disk, "Disk: 1GiB")->type_name("SIZE");
  app.add_option("--disk-rate", typed.disk_rate, "Disk bytes a second, read and written each")
      ->type_name("SIZE");
  add_exec_limits(app, typed);
  app.add_option("--on-oom", typed.on_oom, "What an out-of-memory kill ends")
      ->check(CLI::IsMember({"exec", "sandbox"}));
  add_words(app, "--allow", typed.allow, "Let it reach this host, *.suffix or either with :port")
      ->type_name("HOST");
  add_words(app, "--secret", typed.secrets, "Give it the placeholder of this secret, as a variable")
      ->type_name("NAME");
  add_words(app, "--volume", typed.volumes, "Mount this volume at a path; :ro to read only")
      ->type_name("NAME:/PATH");
  add_words(app, "--require", typed.require, "Refuse without this protection; may be repeated")
      ->type_name("NAME");
  app.add_option("--ttl", typed.ttl, "Delete the sandbox after this time: 10m")->type_name("TIME");
  app.add_option("--idle-ttl", typed.idle_ttl, "Delete it when nothing ran for this time")
      ->type_name("TIME");
  add_words(app, "-e,--env", typed.env, "A variable of the environment; may be repeated")
      ->type_name("NAME=VALUE");
}

void add_exec_options(CLI::App& app, Typed& typed) {
  app.add_option("--timeout", typed.timeout, "Kill the program after this time: 500ms, 1s, 2m")
      ->type_name("TIME");
  app.add_option("--on-output-limit", typed.on_output_limit, "At the output limit: cut or kill")
      ->check(CLI::IsMember({"cut", "kill"}));
}

void add_output_options(CLI::App& app, Typed& typed) {
  app.add_flag("--raw", typed.raw, "Let the program's control sequences reach the terminal");
  app.add_flag("-v,--verbose", typed.verbose, "Print verdict, usage and timings to stderr");
}

void add_process_options(CLI::App& app, Typed& typed) {
  app.add_option("-u,--user", typed.user, "A user inside: user, root or uid[:gid]")
      ->type_name("USER");
  app.add_option("-w,--cwd", typed.cwd, "Where it starts (default: the user's home)")
      ->type_name("DIR");
}

void add_program_create(CLI::App& app, Typed& typed) {
  add_sandbox_options(app, typed);
  app.add_option("--name", typed.sandbox_name, "A name to use instead of the id")
      ->type_name("NAME");
  app.add_flag("--reuse", typed.reuse, "Give the sandbox of that name if there is one");
  app.add_option("--snapshot", typed.snapshot, "Begin with the files of this snapshot")
      ->type_name("SNAPSHOT");
  app.add_option("--on-ttl", typed.on_ttl, "What the end of a ttl does")
      ->check(CLI::IsMember({"delete", "pause"}));
  app.add_flag("--auto-resume", typed.auto_resume, "Go on by itself when it is used while paused");
  app.add_option("--files-only-after", typed.files_only_after,
                 "End its programs and keep its files when it was paused for so long")
      ->type_name("TIME");
  app.add_flag("--files-only-under-pressure", typed.files_only_under_pressure,
               "The same when it is paused and the host is short of memory");
  app.add_flag("--persistent", typed.persistent, "Keep its files when the machine restarts");
  add_words(app, "--metadata", typed.metadata, "A note to find it by; may be repeated")
      ->type_name("KEY=VALUE");
}

void add_run(CLI::App& app, Typed& typed) {
  add_sandbox_options(app, typed);
  CLI::Option* code = app.add_option("-c,--code", typed.code, "The code itself")->type_name("CODE");
  app.add_option("file", typed.file, "A file with the code; - or nothing is standard input")
      ->type_name("FILE")
      ->excludes(code);
  app.add_option("--stdin", typed.input, "What the program reads; - is standard input")
      ->type_name("FILE");
  add_words(app, "--file", typed.files, "Copy a file or directory in first; may be repeated")
      ->type_name("LOCAL:REMOTE");
  app.add_option("--out", typed.output_directory, "Put what it left in /tmp/outputs here")
      ->type_name("DIR");
  add_exec_options(app, typed);
  add_output_options(app, typed);
}

void add_exec(CLI::App& app, Typed& typed) {
  app.add_option("id", typed.id, "The sandbox")->required()->type_name("ID");
  app.add_option("command", typed.command, "The command and its arguments, behind --");
  app.add_flag("-i,--interactive", typed.interactive, "Pass standard input on");
  app.add_flag("-t,--tty", typed.terminal, "Give the program a terminal");
  app.add_flag("-d,--detach", typed.detach, "Print the id of the exec and leave it running");
  add_process_options(app, typed);
  add_words(app, "-e,--env", typed.env, "A variable of the environment; may be repeated")
      ->type_name("NAME=VALUE");
  add_exec_limits(app, typed);
  add_exec_options(app, typed);
  add_output_options(app, typed);
}

void add_shell(CLI::App& app, Typed& typed) {
  app.add_option("id", typed.id, "The sandbox")->required()->type_name("ID");
  app.add_option("--attach", typed.attach, "Go back to a shell that was left with ~.")
      ->type_name("EXEC");
  add_process_options(app, typed);
  add_words(app, "-e,--env", typed.env, "A variable of the environment; may be repeated")
      ->type_name("NAME=VALUE");
  app.add_flag("--raw", typed.raw, "Let it set the title, the clipboard and the like");
}

void add_repl(CLI::App& app, Typed& typed) {
  app.add_option("id", typed.id, "The sandbox (default: a new one, removed at the end)")
      ->type_name("ID");
  app.add_option("-l,--language", typed.code, "python, javascript, typescript or bash")
      ->type_name("NAME");
  add_sandbox_options(app, typed);
}

void add_logs(CLI::App& app, Typed& typed) {
  app.add_option("id", typed.id, "The sandbox")->required()->type_name("ID");
  app.add_option("exec", typed.exec, "The exec: e1")->required()->type_name("EXEC");
  app.add_flag("-f,--follow", typed.follow, "Go on until it ends");
  app.add_flag("--raw", typed.raw, "Let the program's control sequences reach the terminal");
}

void add_bench(CLI::App& app, Typed& typed) {
  app.add_option("-t,--template", typed.template_name, "The template (default: python)")
      ->type_name("NAME");
  app.add_option("-n,--count", typed.count, "How many sandboxes, one after the other")
      ->check(CLI::Range(1u, 100'000u))
      ->capture_default_str()
      ->type_name("N");
}

Result<ExecLimits> exec_limits_of(const Typed& typed) {
  ExecLimits limits;
  ATOLL_TRY(limits.cpu_time, duration_if_given(typed.cpu_time));
  ATOLL_TRY(limits.output_bytes, size_if_given(typed.output_limit));
  limits.open_files = typed.open_files;
  return limits;
}

Result<SandboxOptions> sandbox_options_of(const Typed& typed) {
  SandboxOptions options;
  options.template_name = typed.template_name;
  options.name = typed.sandbox_name;
  if (typed.reuse) options.on_name_conflict = SandboxOptions::Conflict::kUse;
  options.isolation = if_given(typed.isolation);
  options.cpu = typed.cpu;
  ATOLL_TRY(options.memory_bytes, size_if_given(typed.memory));
  options.pids = typed.pids;
  ATOLL_TRY(options.disk_bytes, size_if_given(typed.disk));
  ATOLL_TRY(options.disk_bytes_per_second, size_if_given(typed.disk_rate));
  ATOLL_TRY(options.exec, exec_limits_of(typed));
  options.on_oom = if_given(typed.on_oom);
  options.require = typed.require;
  options.allow = typed.allow;
  options.secrets = typed.secrets;
  for (const std::string& word : typed.volumes) {
    ATOLL_TRY(VolumeMount volume, parse_volume(word));
    options.volumes.push_back(std::move(volume));
  }
  ATOLL_TRY(options.ttl, duration_if_given(typed.ttl));
  ATOLL_TRY(options.idle_ttl, duration_if_given(typed.idle_ttl));
  options.snapshot = if_given(typed.snapshot);
  options.on_ttl = if_given(typed.on_ttl);
  options.auto_resume = typed.auto_resume;
  ATOLL_TRY(options.files_only_after, duration_if_given(typed.files_only_after));
  options.files_only_under_pressure = typed.files_only_under_pressure;
  if (typed.persistent) options.persistence = "persistent";
  ATOLL_TRY(options.env, pairs_of(typed.env));
  ATOLL_TRY(options.metadata, pairs_of(typed.metadata));
  return options;
}

// What was made to be found again lives longer than what runs one program; so does what was given
// one of its two times, which the template's other one would otherwise cut short.
void give_time(SandboxOptions& sandbox) {
  bool is_kept = !sandbox.name.empty() || sandbox.persistence.has_value();
  if (!sandbox.ttl && !sandbox.idle_ttl && !is_kept) return;
  if (!sandbox.idle_ttl)
    sandbox.idle_ttl = sandbox.ttl ? std::max(*sandbox.ttl, kMinIdleTime) : kKeptIdleTime;
  if (!sandbox.ttl) sandbox.ttl = kMaxDuration;
}

Result<ExecOptions> exec_options_of(const Typed& typed) {
  ExecOptions options;
  ATOLL_TRY(options.timeout, duration_if_given(typed.timeout));
  options.on_output_limit = if_given(typed.on_output_limit);
  options.user = if_given(typed.user);
  options.cwd = if_given(typed.cwd);
  return options;
}

OutputMode mode_of(const Typed& typed) { return typed.raw ? OutputMode::kRaw : OutputMode::kSafe; }

ShowOutput show_of(const Typed& typed) {
  return {.mode = mode_of(typed),
          .verbosity = typed.verbose ? Verbosity::kVerbose : Verbosity::kQuiet};
}

Result<Command> make_run(const Typed& typed, const CLI::App& app) {
  RunCommand command;
  ATOLL_TRY(command.sandbox, sandbox_options_of(typed));
  ATOLL_TRY(command.exec, exec_options_of(typed));
  if (app.count("--code") > 0) command.code = typed.code;
  command.file = typed.file;
  command.arguments = typed.command;
  command.input = typed.input;
  command.files = typed.files;
  command.output_directory = typed.output_directory;
  command.show = show_of(typed);
  bool reads_code = !command.code && (command.file.empty() || command.file == "-");
  if (reads_code && command.input == "-")
    return Error(Code::kInvalid, "standard input cannot be both the code and the program's input");
  return Command(std::move(command));
}

Result<Command> make_program_create(const Typed& typed, const CLI::App&) {
  CreateCommand command;
  ATOLL_TRY(command.sandbox, sandbox_options_of(typed));
  if (command.sandbox.template_name.empty()) command.sandbox.template_name = "python";
  if (typed.reuse && typed.sandbox_name.empty())
    return Error(Code::kInvalid, "--reuse needs a --name");
  give_time(command.sandbox);
  return Command(std::move(command));
}

Result<Command> make_exec(const Typed& typed, const CLI::App&) {
  if (typed.command.empty())
    return Error(Code::kInvalid, "exec needs a command: exec ID -- COMMAND");
  ExecCommand command;
  command.id = typed.id;
  command.command = typed.command;
  if (typed.interactive) command.input = ExecCommand::Input::kStandardInput;
  if (typed.terminal) command.mode = ExecCommand::Mode::kTerminal;
  if (typed.detach) command.mode = ExecCommand::Mode::kDetached;
  if (typed.detach && (typed.terminal || typed.interactive))
    return Error(Code::kInvalid, "--detach goes with neither --tty nor --interactive");
  ATOLL_TRY(command.exec, exec_options_of(typed));
  ATOLL_TRY(command.exec.limits, exec_limits_of(typed));
  ATOLL_TRY(command.exec.env, pairs_of(typed.env));
  command.show = show_of(typed);
  return Command(std::move(command));
}

Result<Command> make_shell(const Typed& typed, const CLI::App&) {
  ShellCommand command;
  command.id = typed.id;
  command.attach = typed.attach;
  command.mode = mode_of(typed);
  ATOLL_TRY(command.exec, exec_options_of(typed));
  ATOLL_TRY(command.exec.env, pairs_of(typed.env));
  return Command(std::move(command));
}

Result<Command> make_repl(const Typed& typed, const CLI::App&) {
  ReplCommand command{.id = typed.id, .sandbox = {}, .language = typed.code};
  ATOLL_TRY(command.sandbox, sandbox_options_of(typed));
  if (command.sandbox.template_name.empty()) command.sandbox.template_name = "python";
  return Command(std::move(command));
}

Result<Command> make_logs(const Typed& typed, const CLI::App&) {
  using Until = LogsCommand::Until;
  return Command(
      LogsCommand{typed.id, typed.exec, typed.follow ? Until::kEnd : Until::kNow, mode_of(typed)});
}

Result<Command> make_bench(const Typed& typed, const CLI::App&) {
  return Command(BenchCommand{if_given(typed.template_name).value_or("python"), typed.count});
}

constexpr CommandEntry kProgramEntries[] = {
    {"run", "Run code in a sandbox of its own, then remove it",
     "  atoll run -t python -c 'print(6 * 7)'\n"
     "  atoll run script.py -- first second\n"
     "  atoll run main.cpp\n"
     "  echo 'echo hello' | atoll run -t bash\n"
     "  atoll run --timeout 1s --memory 64MiB --stdin data.csv script.py\n"
     "  atoll run --file data.csv:/home/user/ --out results script.py",
     add_run, make_run},
    {"create", "Create a sandbox and print its id; standard error says when it ends",
     "  atoll create -t python --ttl 10m\n"
     "  atoll create --name work --reuse --memory 1GiB --metadata team=a\n"
     "  atoll create --name work --idle-ttl 12h --on-ttl pause",
     add_program_create, make_program_create},
    {"exec", "Run a command in a sandbox: exec ID -- COMMAND ...",
     "  atoll exec work -- python3 -c 'print(1)'\n"
     "  echo 1 2 3 | atoll exec -i work -- wc -w\n"
     "  atoll exec -it -u root work -- bash\n"
     "  atoll exec -d work -- sleep 60",
     add_exec, make_exec},
    {"shell", "Open a terminal in a sandbox; Enter ~ . leaves it running",
     "  atoll shell work\n"
     "  atoll shell -u root work\n"
     "  atoll shell --attach e3 work",
     add_shell, make_shell},
    {"repl", "Talk to an interpreter in a sandbox; Ctrl-C interrupts, Ctrl-D ends",
     "  atoll repl -t python\n"
     "  atoll repl -l bash work",
     add_repl, make_repl},
    {"logs", "Show what an exec printed",
     "  atoll logs work e1\n"
     "  atoll logs -f work e1",
     add_logs, make_logs},
    {"bench", "Measure create, run and remove through this server",
     "  atoll bench\n"
     "  atoll bench -n 100 --json",
     add_bench, make_bench},
};

}  // namespace

CommandGroup program_entries() { return {"Programs", kProgramEntries}; }

}  // namespace atl::cli
