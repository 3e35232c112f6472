#include "api/e2b/build_script.h"

#include <gtest/gtest.h>

namespace atl::api::e2b {
namespace {

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

TEST(BuildScript, EachStepIsOneCommandShownAsItWasWritten) {
  BuildScript script("user", "");
  ASSERT_TRUE(script.add({"ENV", {"A", "it's", "B", "2"}, ""}).ok());
  ASSERT_TRUE(script.add({"RUN", {"echo \"$A\" '1'\nls"}, ""}).ok());
  ASSERT_EQ(script.commands().size(), 2u);
  EXPECT_EQ(script.commands()[0], "# ENV A B\n:");
  const std::string& run = script.commands()[1];
  EXPECT_TRUE(run.starts_with("# RUN echo \"$A\" '1' ls\n")) << run;
  EXPECT_TRUE(has(run, "export A='it'\\''s'\nexport B='2'\n")) << run;
  EXPECT_TRUE(has(run, "\ncd ~user\n")) << run;
  EXPECT_TRUE(has(run, "sudo -u 'user' \"$shell\" -l -c 'echo \"$A\" '\\''1'\\''\nls'")) << run;
}

TEST(BuildScript, UserAndDirectoryHoldForWhatFollows) {
  BuildScript script("user", "");
  ASSERT_TRUE(script.add({"WORKDIR", {"app"}, ""}).ok());
  EXPECT_EQ(script.directory(), "/home/user/app");
  ASSERT_TRUE(script.add({"USER", {"root"}, ""}).ok());
  ASSERT_TRUE(script.add({"WORKDIR", {"./in"}, ""}).ok());
  EXPECT_EQ(script.directory(), "/home/user/app/in");
  EXPECT_EQ(script.user(), "root");
  ASSERT_TRUE(script.add({"RUN", {"true", "user"}, ""}).ok());
  EXPECT_TRUE(has(script.commands().back(), "cd '/home/user/app/in'\nexec sudo -u 'user'"));
  EXPECT_EQ(script.user(), "root") << "that of one step is its alone";
}

TEST(BuildScript, PatternsAreLeftToTheShellAndNothingElseIs) {
  BuildScript script("user", "/srv");
  ASSERT_TRUE(script.add({"COPY", {"a b$(x)*.txt", "to/", "", "0600"}, "0"}).ok());
  const std::string& copy = script.commands().back();
  EXPECT_TRUE(has(copy, "from='/tmp/atoll-copy/0' to='/srv/to/' owner='user:' ")) << copy;
  EXPECT_TRUE(has(copy, " mode='0600' slash=/\n")) << copy;
  EXPECT_TRUE(has(copy, "' ''b''$''(''x'')'*'.'")) << copy;
}

TEST(BuildScript, WhatIsNoStepIsRefused) {
  BuildScript script("user", "");
  for (const BuildStep& step : std::vector<BuildStep>{{"FROM", {"x"}, ""},
                                                      {"RUN", {}, ""},
                                                      {"RUN", {"x", "a b"}, ""},
                                                      {"RUN", {"x", "-u"}, ""},
                                                      {"COPY", {"a"}, "0"},
                                                      {"COPY", {"a", "b"}, ""},
                                                      {"COPY", {"a", "b", "u:g:h"}, "0"},
                                                      {"COPY", {"a", "b", "", "rwx"}, "0"},
                                                      {"USER", {"$(id)"}, ""},
                                                      {"WORKDIR", {""}, ""},
                                                      {"ENV", {"A"}, ""},
                                                      {"ENV", {"A B", "x"}, ""}})
    EXPECT_FALSE(script.add(step).ok()) << step.type;
  EXPECT_TRUE(script.commands().empty());
}

}  // namespace
}  // namespace atl::api::e2b
