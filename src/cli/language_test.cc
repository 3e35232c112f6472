#include "cli/language.h"

#include <gtest/gtest.h>

namespace atl::cli {
namespace {

std::string language_of(CodeSource source) {
  auto language = find_language(source);
  return language ? std::string((*language)->name) : "none";
}

TEST(Language, ByExtensionThenFirstLineThenTemplate) {
  EXPECT_EQ(language_of({"", "a/x.py", ""}), "python");
  EXPECT_EQ(language_of({"", "x.sh", "#!/usr/bin/python3"}), "bash");
  EXPECT_EQ(language_of({"", "x.js", ""}), "node");
  EXPECT_EQ(language_of({"", "x.cpp", ""}), "cpp");
  EXPECT_EQ(language_of({"", "x.go", ""}), "go");
  EXPECT_EQ(language_of({"", "x.c", ""}), "c");
  EXPECT_EQ(language_of({"", "x.mjs", ""}), "node");
  EXPECT_EQ(language_of({"cpp-algorithm", "", "int main() {}"}), "cpp");
  EXPECT_EQ(language_of({"node-18", "", "1"}), "node");
  EXPECT_EQ(language_of({"code-interpreter-v1", "", "1"}), "python");
  EXPECT_EQ(language_of({"", "x", "#!/usr/bin/env -S python3 -u\nprint(1)"}), "python");
  EXPECT_EQ(language_of({"", "x", "#! /bin/sh\n"}), "bash");
  EXPECT_EQ(language_of({"", "x", "#!/usr/bin/python3.11"}), "python");
  EXPECT_EQ(language_of({"node", "x", "1"}), "node");
  EXPECT_EQ(language_of({"python-data-science", "", "1"}), "python");
  EXPECT_EQ(language_of({"", "", "print(1)"}), "python");
}

TEST(Language, SaysWhatToDoWhenNothingTells) {
  for (CodeSource source : {CodeSource{"", "Makefile", "all:"}, CodeSource{"ruby", "", "puts 1"},
                            CodeSource{"", "x", "#!"}, CodeSource{"", "x", "#!/usr/bin/env"}}) {
    auto language = find_language(source);
    ASSERT_FALSE(language.ok());
    EXPECT_NE(language.error().message().find("remedy: "), std::string::npos);
  }
}

TEST(Language, TheCodeOrThePathStandsBeforeTheArguments) {
  using Words = std::vector<std::string>;
  const Language& python = **find_language({"python", "", ""});
  EXPECT_EQ(command_of(python, "print(1)", ""), (Words{"python3", "-c", "print(1)"}));
  EXPECT_EQ(command_of(python, "", "/home/user/x.py"), (Words{"python3", "/home/user/x.py"}));
  EXPECT_TRUE(compile_command_of(python, "/home/user/x.py").empty());
  const Language& bash = **find_language({"bash", "", ""});
  EXPECT_EQ(command_of(bash, "echo $1", ""), (Words{"bash", "-c", "echo $1", "main.sh"}));
}

TEST(Language, WhatIsCompiledRunsWithoutItsSource) {
  using Words = std::vector<std::string>;
  const Language& cpp = **find_language({"", "x.cpp", ""});
  EXPECT_TRUE(cpp.run_code.empty());
  EXPECT_EQ(compile_command_of(cpp, "/x.cpp"),
            (Words{"g++", "-std=c++20", "-O2", "-o", "/tmp/main", "/x.cpp"}));
  EXPECT_EQ(command_of(cpp, "", "/x.cpp"), Words{"/tmp/main"});
}

}  // namespace
}  // namespace atl::cli
