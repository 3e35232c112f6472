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

TEST(CommandLine, RemovesSeveralAtOnce) {
  EXPECT_EQ(parsed<RemoveCommand>({"rm", "s1", "s2"}).ids, (Words{"s1", "s2"}));
  EXPECT_FALSE(parse_command_line({"rm"}).ok());
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
