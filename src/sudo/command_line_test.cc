#include "sudo/command_line.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace atl::sudo {
namespace {

using Mode = CommandLine::Mode;
using Words = std::vector<std::string>;

Result<CommandLine> parse(Words words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return parse_command_line(pointers);
}

Caller caller() {
  return {.uid = 1000, .gid = 1000, .environment = {"HOME=/x", "PATH=/p"}, .directory = "/work"};
}

bool has(const agent::Start& start, const std::string& variable) {
  return std::count(start.environment.begin(), start.environment.end(), variable) == 1;
}

TEST(CommandLine, TakesOptionsOnlyBeforeTheCommand) {
  auto line = parse({"-nEH", "-u", "user", "ls", "-u", "root"});
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->user, "user");
  EXPECT_EQ(line->command, (Words{"ls", "-u", "root"}));
  EXPECT_EQ(parse({"--", "-x"})->command, (Words{"-x"}));
}

TEST(CommandLine, TakesUsersInEveryWriting) {
  for (const Words& words :
       {Words{"-uuser", "x"}, {"-nu", "user", "x"}, {"--user=user", "x"}, {"--user", "user", "x"}})
    EXPECT_EQ(parse(words)->user, "user");
  for (const Words& words : {Words{"x"}, {"-u", "root", "x"}})
    EXPECT_EQ(parse(words)->user, "root");
  EXPECT_EQ(parse({"-u#0", "x"})->user, "0");
  EXPECT_EQ(parse({"-u", "nobody", "x"})->user, "nobody") << "the agent knows who there is";
  for (const Words& words : {Words{"-u"},
                             {"--user"},
                             {"-u", "", "x"},
                             {"-u", "#", "x"},
                             {"-u", "0", "x"},
                             {"-u", "#a", "x"},
                             {"-u", "#1:0", "x"},
                             {"-u", std::string(65, 'a'), "x"}})
    EXPECT_FALSE(parse(words).ok());
}

TEST(CommandLine, RefusesWhatItDoesNotKnow) {
  for (const Words& words :
       {Words{}, {"-x", "ls"}, {"--nothing", "ls"}, {"-g", "root", "ls"}, {"-n"}})
    EXPECT_FALSE(parse(words).ok());
}

TEST(CommandLine, HasNothingToDoForThePassword) {
  for (const Words& words : {Words{"-v"}, {"-l"}, {"-k"}, {"-K"}, {"--validate"}})
    EXPECT_EQ(parse(words)->mode, Mode::kNothing);
  EXPECT_EQ(parse({"-k", "ls"})->mode, Mode::kCommand);
}

TEST(CommandLine, VariablesComeBeforeTheCommand) {
  auto line = parse({"A=1", "B=", "env", "C=3"});
  EXPECT_EQ(line->variables, (Words{"A=1", "B="}));
  EXPECT_EQ(line->command, (Words{"env", "C=3"}));
  EXPECT_EQ(parse({"./a=b"})->command, (Words{"./a=b"}));
}

TEST(Start, TellsTheCommandWhoAsked) {
  agent::Start start = make_start(*parse({"HOME=/y", "ls"}), caller());
  for (const char* variable :
       {"SUDO_USER=user", "SUDO_UID=1000", "SUDO_GID=1000", "PATH=/p", "HOME=/y"})
    EXPECT_TRUE(has(start, variable)) << variable;
  EXPECT_FALSE(has(start, "HOME=/x"));
  EXPECT_EQ(start.directory, "/work");
  EXPECT_EQ(make_start(*parse({"ls"}), caller()).environment,
            (Words{"PATH=/p", "SUDO_USER=user", "SUDO_UID=1000", "SUDO_GID=1000"}))
      << "the rest is the agent's to say";
}

TEST(Start, ShellsGetTheCommandAsOneScript) {
  EXPECT_EQ(make_start(*parse({"-s", "echo", "it's", "$a b"}), caller()).arguments,
            (Words{"/bin/sh", "-c", "'echo' 'it'\\''s' '$a b'"}));
  agent::Start login = make_start(*parse({"-i"}), caller());
  EXPECT_EQ(login.arguments, (Words{"/bin/sh", "-l"}));
  EXPECT_EQ(login.directory, "") << "the home of whoever it is";
  EXPECT_EQ(make_start(*parse({"-iD", "sub"}), caller()).directory, caller().directory + "/sub");
}

}  // namespace
}  // namespace atl::sudo
