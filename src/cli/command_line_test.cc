#include "cli/command_line.h"

#include <sstream>

#include <gtest/gtest.h>

#include "cli/command_table.h"

namespace atl::cli {
namespace {

using Words = std::vector<std::string>;

template <typename T>
T parsed(Words words) {
  auto line = parse_command_line(std::move(words));
  EXPECT_TRUE(line.ok()) << (line.ok() ? "" : line.error().message());
  const T* command = line.ok() ? std::get_if<T>(&line->command) : nullptr;
  EXPECT_NE(command, nullptr);
  return command ? *command : T{};
}

TEST(CommandLine, UpListensOnLoopbackByDefault) {
  auto up = parsed<UpCommand>({"up"});
  EXPECT_EQ(up.listen.string(), "127.0.0.1:4700");
  EXPECT_EQ(up.mode, UpCommand::Mode::kForeground);
  EXPECT_EQ(parsed<UpCommand>({"up", "--detach"}).mode, UpCommand::Mode::kDetached);
}

TEST(CommandLine, UpRefusesARemoteAddressUnlessItIsAllowed) {
  EXPECT_FALSE(parse_command_line({"up", "--listen", "0.0.0.0:4700"}).ok());
  EXPECT_FALSE(parse_command_line({"up", "--listen", "[::]:4700"}).ok());
  auto up = parsed<UpCommand>({"up", "--listen", "0.0.0.0:4700", "--allow-remote"});
  EXPECT_EQ(up.reach, UpCommand::Reach::kAnywhere);
}

TEST(CommandLine, AnOptionThatMayBeRepeatedTakesOneWord) {
  auto run = parsed<RunCommand>({"run", "--allow", "a.example", "--allow", "b.example", "x.py"});
  EXPECT_EQ(run.sandbox.allow, (std::vector<std::string>{"a.example", "b.example"}));
  EXPECT_EQ(run.file, "x.py");
}

TEST(CommandLine, KeysAreOursUnlessTheyAreForClientsOfE2b) {
  using Shape = CreateKeyCommand::Shape;
  EXPECT_EQ(parsed<CreateKeyCommand>({"key", "create"}).shape, Shape::kAtoll);
  EXPECT_EQ(parsed<CreateKeyCommand>({"key", "create", "--e2b", "--json"}).shape, Shape::kE2b);
}

TEST(CommandLine, RestartReplacesBothUnlessOneIsNamed) {
  using What = RestartCommand::What;
  EXPECT_EQ(parsed<RestartCommand>({"restart"}).what, What::kBoth);
  EXPECT_EQ(parsed<RestartCommand>({"restart", "--daemon"}).what, What::kDaemon);
  EXPECT_EQ(parsed<RestartCommand>({"restart", "--warden"}).what, What::kWarden);
  EXPECT_FALSE(parse_command_line({"restart", "--warden", "--daemon"}).ok());
  EXPECT_EQ(parsed<UpCommand>({"up"}).stop, UpCommand::Stop::kRemoves);
  EXPECT_EQ(parsed<UpCommand>({"up", "--keep"}).stop, UpCommand::Stop::kKeeps);
  EXPECT_EQ(parsed<UpCommand>({"up", "--kvm-trial", "0"}).kvm_trial_seconds, 0);
  EXPECT_EQ(parsed<UpCommand>({"up", "--pool-size", "2GiB"}).pool_bytes, 2ull << 30);
  EXPECT_EQ(parsed<UpCommand>({"up"}).kvm_trial_seconds, std::nullopt);
  EXPECT_EQ(parsed<UpCommand>({"up", "--gvisor-platform", "ptrace"}).gvisor_platform, "ptrace");
  EXPECT_EQ(parsed<UpCommand>({"up"}).gvisor_platform, "");
}

TEST(CommandLine, BackupAndRestoreNeedAFile) {
  EXPECT_EQ(parsed<BackupCommand>({"backup", "f"}).images, BackupCommand::Images::kHold);
  EXPECT_EQ(parsed<BackupCommand>({"backup", "--without-images", "f"}).images,
            BackupCommand::Images::kLeaveOut);
  EXPECT_EQ(parsed<RestoreCommand>({"restore", "f"}).file, "f");
  EXPECT_FALSE(parse_command_line({"backup"}).ok());
  EXPECT_FALSE(parse_command_line({"restore"}).ok());
}

TEST(CommandLine, StateDirectoryCarriesTheRunDirectory) {
  auto line = parse_command_line({"down", "--state-dir", "/tmp/x/"});
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->places.state, "/tmp/x");
  EXPECT_EQ(line->places.run, "/tmp/x/run");
  auto standard = parse_command_line({"down"});
  EXPECT_EQ(standard->places.state, "/var/lib/atoll");
  EXPECT_EQ(standard->places.run, "/run/atoll");
}

TEST(CommandLine, GlobalOptionsStandBeforeOrAfterTheCommand) {
  for (Words words :
       {Words{"--json", "ls"}, Words{"ls", "--json"}, Words{"template", "ls", "--json"}})
    EXPECT_EQ(parse_command_line(words).value().format, Format::kJson);
}

TEST(CommandLine, RunTakesCodeFileOrStandardInput) {
  auto code = parsed<RunCommand>({"run", "-t", "python", "-c", "", "--timeout", "1s"});
  EXPECT_EQ(code.code, "");
  EXPECT_EQ(code.exec.timeout, std::chrono::milliseconds(1000));
  EXPECT_EQ(parsed<RunCommand>({"run", "x.py"}).file, "x.py");
  EXPECT_EQ(parsed<RunCommand>({"run"}).file, "");
  EXPECT_EQ(parsed<RunCommand>({"run", "x.py", "--", "-c", "--json"}).arguments,
            (Words{"-c", "--json"}));
  EXPECT_EQ(parsed<RunCommand>({"run", "x.py", "--stdin", "-"}).input, "-");
  EXPECT_FALSE(parse_command_line({"run", "-", "--stdin", "-"}).ok());
  EXPECT_FALSE(parse_command_line({"run", "--stdin", "-"}).ok());
  EXPECT_FALSE(parse_command_line({"run", "-c", "1", "x.py"}).ok());
  EXPECT_FALSE(parse_command_line({"run", "--timeout", "soon"}).ok());
}

TEST(CommandLine, ExecPassesEverythingBehindTheDashesOn) {
  auto exec = parsed<ExecCommand>({"exec", "s1", "-v", "--", "ls", "--json", "--", "-l"});
  EXPECT_EQ(exec.id, "s1");
  EXPECT_EQ(exec.command, (Words{"ls", "--json", "--", "-l"}));
  EXPECT_EQ(exec.show.verbosity, Verbosity::kVerbose);
  EXPECT_EQ(parsed<ExecCommand>({"exec", "s1", "true"}).command, Words{"true"});
  EXPECT_FALSE(parse_command_line({"exec", "s1"}).ok());
  EXPECT_FALSE(parse_command_line({"exec", "--", "true"}).ok());
}

TEST(CommandLine, CreateAndRunTakeTheLimitsOfASandbox) {
  Words limits = {
      "--cpu",      "0.5",      "--memory",       "64MiB",         "--pids",       "32",
      "--disk",     "2MiB",     "--disk-rate",    "1MiB",          "--open-files", "64",
      "--cpu-time", "1500ms",   "--output-limit", "4KiB",          "--on-oom",     "sandbox",
      "--require",  "landlock", "--require",      "simple_quotas", "--ttl",        "2m",
      "--idle-ttl", "10s"};
  Words create = {"create", "-t", "python"};
  create.insert(create.end(), limits.begin(), limits.end());
  SandboxOptions options = parsed<CreateCommand>(create).sandbox;
  EXPECT_EQ(options.template_name, "python");
  EXPECT_EQ(options.cpu, 0.5);
  EXPECT_EQ(options.memory_bytes, 64u << 20);
  EXPECT_EQ(options.pids, 32u);
  EXPECT_EQ(options.disk_bytes, 2u << 20);
  EXPECT_EQ(options.disk_bytes_per_second, 1u << 20);
  EXPECT_EQ(options.exec.open_files, 64u);
  EXPECT_EQ(options.exec.cpu_time, std::chrono::milliseconds(1500));
  EXPECT_EQ(options.exec.output_bytes, 4096u);
  EXPECT_EQ(options.on_oom, "sandbox");
  EXPECT_EQ(options.require, (Words{"landlock", "simple_quotas"}));
  EXPECT_EQ(options.ttl, std::chrono::minutes(2));
  EXPECT_EQ(options.idle_ttl, std::chrono::seconds(10));
  Words run = {"run", "-c", "1", "--on-output-limit", "kill"};
  run.insert(run.end(), limits.begin(), limits.end());
  auto command = parsed<RunCommand>(run);
  EXPECT_EQ(command.sandbox.exec.output_bytes, 4096u);
  EXPECT_EQ(command.exec.on_output_limit, "kill");
  EXPECT_FALSE(parsed<CreateCommand>({"create"}).sandbox.memory_bytes.has_value());
}

TEST(CommandLine, ExecTakesItsOwnLimits) {
  auto exec = parsed<ExecCommand>({"exec", "s1", "--cpu-time", "2s", "--output-limit", "0",
                                   "--open-files", "16", "--on-output-limit", "cut", "true"});
  EXPECT_EQ(exec.exec.limits.cpu_time, std::chrono::seconds(2));
  EXPECT_EQ(exec.exec.limits.output_bytes, 0u);
  EXPECT_EQ(exec.exec.limits.open_files, 16u);
  EXPECT_EQ(exec.exec.on_output_limit, "cut");
  EXPECT_EQ(exec.command, Words{"true"});
}

TEST(CommandLine, NonsenseLimitsAreRefused) {
  for (Words words :
       {Words{"create", "--memory", "lots"}, Words{"create", "--pids", "-1"},
        Words{"create", "--pids", "4294967296"}, Words{"create", "--on-oom", "host"},
        Words{"create", "--idle-ttl", "0s"}, Words{"run", "--cpu-time", "soon"},
        Words{"run", "--on-output-limit", "warn"}, Words{"exec", "s1", "--memory", "1GiB", "true"}})
    EXPECT_FALSE(parse_command_line(words).ok()) << words[1] << " " << words[2];
}

TEST(CommandLine, RemovesSeveralAtOnce) {
  EXPECT_EQ(parsed<RemoveCommand>({"rm", "s1", "s2"}).ids, (Words{"s1", "s2"}));
  EXPECT_FALSE(parse_command_line({"rm"}).ok());
  EXPECT_FALSE(parse_command_line({"rm", "--all", "s1"}).ok());
  auto all = parsed<RemoveCommand>({"rm", "--all", "--yes"});
  EXPECT_EQ(all.what, RemoveCommand::What::kAll);
  EXPECT_EQ(all.confirm, RemoveCommand::Confirm::kYes);
  EXPECT_EQ(parsed<RemoveCommand>({"rm", "--all"}).confirm, RemoveCommand::Confirm::kAsk);
}

TEST(CommandLine, ExecSaysWhoWhereAndHow) {
  auto exec = parsed<ExecCommand>({"exec", "-i", "-t", "-u", "root", "-w", "/tmp", "-e", "A=b=c",
                                   "-e", "B=", "s1", "--", "sh"});
  EXPECT_EQ(exec.input, ExecCommand::Input::kStandardInput);
  EXPECT_EQ(exec.mode, ExecCommand::Mode::kTerminal);
  EXPECT_EQ(exec.exec.user, "root");
  EXPECT_EQ(exec.exec.cwd, "/tmp");
  EXPECT_EQ(exec.exec.env, (Pairs{{"A", "b=c"}, {"B", ""}}));
  EXPECT_EQ(parsed<ExecCommand>({"exec", "-it", "s1", "--", "sh"}).mode,
            ExecCommand::Mode::kTerminal);
  EXPECT_EQ(parsed<ExecCommand>({"exec", "-d", "s1", "--", "sh"}).mode,
            ExecCommand::Mode::kDetached);
  EXPECT_FALSE(parse_command_line({"exec", "-d", "-i", "s1", "--", "sh"}).ok());
  EXPECT_FALSE(parse_command_line({"exec", "-e", "A", "s1", "--", "sh"}).ok());
  EXPECT_FALSE(parse_command_line({"exec", "-e", "=b", "s1", "--", "sh"}).ok());
}

TEST(CommandLine, CreateTakesANameAndNotes) {
  auto create = parsed<CreateCommand>(
      {"create", "--name", "work", "--reuse", "--metadata", "team=a", "-e", "A=b"});
  EXPECT_EQ(create.sandbox.template_name, "python");
  EXPECT_EQ(create.sandbox.name, "work");
  EXPECT_EQ(create.sandbox.on_name_conflict, SandboxOptions::Conflict::kUse);
  EXPECT_EQ(create.sandbox.metadata, (Pairs{{"team", "a"}}));
  EXPECT_EQ(create.sandbox.env, (Pairs{{"A", "b"}}));
  EXPECT_FALSE(parse_command_line({"create", "--reuse"}).ok());
}

TEST(CommandLine, WhatHasANameOutlivesTheTimesOfItsTemplate) {
  using std::chrono::hours;
  auto named = parsed<CreateCommand>({"create", "--name", "work"}).sandbox;
  EXPECT_EQ(named.idle_ttl, hours(1));
  EXPECT_EQ(named.ttl, hours(24 * 7));
  EXPECT_EQ(parsed<CreateCommand>({"create", "--persistent"}).sandbox.idle_ttl, hours(1));
  auto nameless = parsed<CreateCommand>({"create"}).sandbox;
  EXPECT_FALSE(nameless.ttl || nameless.idle_ttl);
}

TEST(CommandLine, OneTimeOfASandboxIsNotCutShortByTheOther) {
  using std::chrono::hours;
  auto lives = parsed<CreateCommand>({"create", "--ttl", "2h"}).sandbox;
  EXPECT_EQ(lives.ttl, hours(2));
  EXPECT_EQ(lives.idle_ttl, hours(2));
  auto idles = parsed<CreateCommand>({"create", "--name", "work", "--idle-ttl", "12h"}).sandbox;
  EXPECT_EQ(idles.idle_ttl, hours(12));
  EXPECT_EQ(idles.ttl, hours(24 * 7));
  auto short_lived = parsed<CreateCommand>({"create", "--ttl", "10ms"}).sandbox;
  EXPECT_EQ(short_lived.idle_ttl, std::chrono::seconds(1));  // the API takes no less
}

TEST(CommandLine, ListFiltersByStateAndNotes) {
  auto list = parsed<ListCommand>({"ls", "--metadata", "team=a", "--metadata", "x=y:z", "-q"});
  EXPECT_EQ(list.metadata, (Words{"team:a", "x:y:z"}));
  EXPECT_EQ(list.what, ListCommand::What::kUsable);
  EXPECT_EQ(list.columns, ListCommand::Columns::kIds);
  EXPECT_EQ(parsed<ListCommand>({"ls", "--state", "failed"}).what, ListCommand::What::kAll);
}

TEST(CommandLine, FilesAreNamedByOneWordOrTwo) {
  for (Words words : {Words{"cat", "work", "/etc/passwd"}, Words{"cat", "work:/etc/passwd"}}) {
    auto cat = parsed<CatCommand>(words);
    EXPECT_EQ(cat.file.sandbox, "work");
    EXPECT_EQ(cat.file.path, "/etc/passwd");
  }
  EXPECT_EQ(parsed<ListFilesCommand>({"ls-files", "work"}).directory.path, "/home/user");
  EXPECT_EQ(parsed<WatchCommand>({"watch", "-R", "work", "a"}).path.path, "/home/user/a");
  EXPECT_FALSE(parse_command_line({"cat", "work:/a", "/b"}).ok());
}

TEST(CommandLine, CopyGoesOneWay) {
  auto copy = parsed<CopyCommand>({"cp", "-r", "./a:b", "work:/tmp"});
  EXPECT_EQ(copy.from, "./a:b");
  EXPECT_EQ(copy.depth, Depth::kRecursive);
  EXPECT_FALSE(parse_command_line({"cp", "a", "b"}).ok());
  EXPECT_FALSE(parse_command_line({"cp", "work:/a", "work:/b"}).ok());
  EXPECT_FALSE(parse_command_line({"cp", "work:/a"}).ok());
}

TEST(CommandLine, PortsAndLogs) {
  EXPECT_EQ(parsed<PortsCommand>({"ports", "work", "--open", "8000"}).open, 8000);
  EXPECT_FALSE(parse_command_line({"ports", "work", "--open", "65536"}).ok());
  EXPECT_FALSE(parse_command_line({"ports", "work", "--open", "0"}).ok());
  auto logs = parsed<LogsCommand>({"logs", "-f", "work", "e1"});
  EXPECT_EQ(logs.exec, "e1");
  EXPECT_EQ(logs.until, LogsCommand::Until::kEnd);
  EXPECT_FALSE(parse_command_line({"logs", "work"}).ok());
}

TEST(CommandLine, NothingBehindTheDashesIsLost) {
  EXPECT_FALSE(parse_command_line({"ls", "--", "x"}).ok());
}

TEST(CommandLine, DoctorTakesNothingButTheGlobalOptions) {
  parsed<DoctorCommand>({"doctor"});
  EXPECT_EQ(parse_command_line({"doctor", "--json"}).value().format, Format::kJson);
  EXPECT_FALSE(parse_command_line({"doctor", "jail"}).ok());
}

TEST(CommandLine, HelpIsPrintedForTheWholeAndForOneCommand) {
  for (Words words : {Words{}, Words{"help"}, Words{"--help"}})
    EXPECT_NE(parsed<HelpCommand>(words).text.find("Create a sandbox"), std::string::npos);
  EXPECT_NE(parsed<HelpCommand>({"help", "run"}).text.find("--timeout"), std::string::npos);
  EXPECT_NE(parsed<HelpCommand>({"run", "--help"}).text.find("--timeout"), std::string::npos);
}

TEST(CommandLine, EveryCommandHasHelpWithExamplesThatParse) {
  for (const CommandGroup& group : command_table())
    for (const CommandEntry& entry : group.entries) {
      Words words = {"help"};
      std::istringstream name(entry.name);
      for (std::string word; name >> word;) words.push_back(word);
      std::string text = parsed<HelpCommand>(words).text;
      EXPECT_NE(text.find(entry.summary), std::string::npos) << entry.name;
      EXPECT_NE(text.find(entry.examples), std::string::npos) << entry.name;
      EXPECT_NE(std::string(entry.examples).find(std::string("atoll ") + entry.name),
                std::string::npos)
          << entry.name;
    }
}

TEST(CommandLine, RefusesUnknownWordsAndGuesses) {
  auto message = [](Words words) { return parse_command_line(words).error().message(); };
  EXPECT_EQ(parse_command_line({"fly"}).error().code(), Code::kInvalid);
  EXPECT_EQ(message({"--json", "quux"}), "there is no command \"quux\"");
  EXPECT_EQ(message({"craete"}), "there is no command \"craete\"; did you mean \"create\"?");
  EXPECT_EQ(message({"ls-file"}), "there is no command \"ls-file\"; did you mean \"ls-files\"?");
  EXPECT_EQ(message({"template", "lss"}),
            "there is no command \"template lss\"; did you mean \"template ls\"?");
  EXPECT_FALSE(parse_command_line({"ls", "--fast"}).ok());
  EXPECT_FALSE(parse_command_line({"template"}).ok());
}

}  // namespace
}  // namespace atl::cli
