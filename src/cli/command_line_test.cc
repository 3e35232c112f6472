#include "cli/command_line.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(code.timeout, std::chrono::milliseconds(1000));
  EXPECT_EQ(parsed<RunCommand>({"run", "x.py"}).file, "x.py");
  EXPECT_EQ(parsed<RunCommand>({"run"}).file, "-");
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
  EXPECT_EQ(command.on_output_limit, "kill");
  EXPECT_FALSE(parsed<CreateCommand>({"create"}).sandbox.memory_bytes.has_value());
}

TEST(CommandLine, ExecTakesItsOwnLimits) {
  auto exec = parsed<ExecCommand>({"exec", "s1", "--cpu-time", "2s", "--output-limit", "0",
                                   "--open-files", "16", "--on-output-limit", "cut", "true"});
  EXPECT_EQ(exec.limits.cpu_time, std::chrono::seconds(2));
  EXPECT_EQ(exec.limits.output_bytes, 0u);
  EXPECT_EQ(exec.limits.open_files, 16u);
  EXPECT_EQ(exec.on_output_limit, "cut");
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

TEST(CommandLine, RefusesUnknownWords) {
  EXPECT_EQ(parse_command_line({"fly"}).error().code(), Code::kInvalid);
  EXPECT_EQ(parse_command_line({"--json", "fly"}).error().message(), "there is no command \"fly\"");
  EXPECT_FALSE(parse_command_line({"ls", "--fast"}).ok());
  EXPECT_FALSE(parse_command_line({"template"}).ok());
}

}  // namespace
}  // namespace atl::cli
