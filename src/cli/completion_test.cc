#include "cli/completion.h"

#include <stdio.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "cli/fixture_test.h"

namespace atl::cli {
namespace {

// What bash offers for the last of `words`, with an atoll that knows two sandboxes.
std::vector<std::string> offered(const TempDir& directory, const std::string& words) {
  write_text(directory / "atoll",
             "#!/bin/sh\necho 'ID NAME STATE'\necho 'sb1 work running'\necho 'sb2 - running'\n");
  chmod((directory / "atoll").c_str(), 0755);
  write_text(directory / "script",
             bash_completion() + "PATH=" + directory.path() + ":$PATH\ncd " + directory.path() +
                 "\nCOMP_WORDS=(" + words +
                 ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_atoll\nprintf '%s\\n' "
                 "\"${COMPREPLY[@]}\"\n");
  FILE* bash = popen(("bash --norc " + (directory / "script")).c_str(), "r");
  std::vector<std::string> lines;
  char line[256];
  while (fgets(line, sizeof line, bash) != nullptr) {
    lines.emplace_back(line);
    lines.back().pop_back();
    if (lines.back().empty()) lines.pop_back();
  }
  EXPECT_EQ(pclose(bash), 0);
  return lines;
}

bool has(const std::vector<std::string>& lines, const char* word) {
  return std::find(lines.begin(), lines.end(), word) != lines.end();
}

TEST(Completion, BashAcceptsTheScript) {
  TempDir directory;
  write_text(directory / "script", bash_completion());
  EXPECT_EQ(system(("bash -n " + (directory / "script")).c_str()), 0);
}

TEST(Completion, OffersCommandsOptionsSandboxesAndFiles) {
  TempDir directory;
  write_text(directory / "local.py", "");
  using Words = std::vector<std::string>;
  EXPECT_EQ(offered(directory, "atoll she"), Words{"shell"});
  EXPECT_TRUE(has(offered(directory, "atoll ''"), "ls-files"));
  EXPECT_EQ(offered(directory, "atoll template a"), Words{"add"});
  EXPECT_EQ(offered(directory, "atoll help crea"), Words{"create"});
  EXPECT_EQ(offered(directory, "atoll run --mem"), Words{"--memory"});
  EXPECT_TRUE(has(offered(directory, "atoll create --"), "--json"));
  EXPECT_EQ(offered(directory, "atoll --json exec ''"), (Words{"sb1", "work", "sb2"}));
  EXPECT_EQ(offered(directory, "atoll rm wo"), Words{"work"});
  EXPECT_EQ(offered(directory, "atoll --state-dir /x show sb2"), Words{"sb2"});
  EXPECT_EQ(offered(directory, "atoll run --on-oom ''"), (Words{"exec", "sandbox"}));
  EXPECT_EQ(offered(directory, "atoll run loc"), Words{"local.py"});
  EXPECT_EQ(offered(directory, "atoll run --stdin loc"), Words{"local.py"});
  EXPECT_EQ(offered(directory, "atoll secret ''"), (Words{"set", "ls", "rm"}));
  EXPECT_EQ(offered(directory, "atoll secret set --value-file loc"), Words{"local.py"});
  EXPECT_EQ(offered(directory, "atoll run --secr"), Words{"--secret"});
  EXPECT_EQ(offered(directory, "atoll run --memory ''"), Words{});
  EXPECT_EQ(offered(directory, "atoll completion f"), Words{"fish"});
  EXPECT_TRUE(has(offered(directory, "atoll cp ''"), "work"));
  EXPECT_TRUE(has(offered(directory, "atoll cp ''"), "local.py"));
}

TEST(Completion, TheOtherShellsKnowTheSameCommands) {
  for (const std::string& script : {zsh_completion(), fish_completion()})
    for (const char* word : {"ls-files", "show-local", "on-oom", "completion"})
      EXPECT_NE(script.find(word), std::string::npos) << word;
}

}  // namespace
}  // namespace atl::cli
