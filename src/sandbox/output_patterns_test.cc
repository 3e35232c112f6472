#include "sandbox/output_patterns.h"

#include <gtest/gtest.h>

namespace atl::sandbox {
namespace {

using Paths = std::vector<std::string>;

TEST(OutputPatterns, NoneMeansAllOfTheOutputsDirectory) {
  OutputPatterns patterns = OutputPatterns::parse({}).value();
  EXPECT_TRUE(patterns.are_usual());
  ASSERT_EQ(patterns.patterns().size(), 1u);
  EXPECT_EQ(patterns.patterns()[0].directory, "/tmp/outputs");
  EXPECT_EQ(patterns.paths_of("a/b.txt"), Paths{"/tmp/outputs/a/b.txt"});
}

TEST(OutputPatterns, OnlyTheDirectoryBeforeTheFirstWildcardIsLookedInto) {
  struct {
    const char *glob, *directory, *rest;
  } cases[] = {{"/home/user/*.csv", "/home/user", "*.csv"},
               {"/home/user/report.pdf", "/home/user", "report.pdf"},
               {"/srv/r[0-9]/out/**", "/srv", "r[0-9]/out/**"},
               {"/srv/a\\*b/c", "/srv", "a\\*b/c"},
               {"/*.log", "/", "*.log"},
               {"/file", "/", "file"}};
  for (const auto& one : cases) {
    OutputPatterns patterns = OutputPatterns::parse({one.glob}).value();
    EXPECT_EQ(patterns.patterns()[0].directory, one.directory) << one.glob;
    EXPECT_EQ(patterns.patterns()[0].rest, one.rest) << one.glob;
    EXPECT_FALSE(patterns.are_usual()) << one.glob;
  }
}

TEST(OutputPatterns, WhatStaysWithinTheOutputsDirectoryIsUsual) {
  EXPECT_TRUE(OutputPatterns::parse({"/tmp/outputs/*.png", "/tmp/outputs/a/**"})->are_usual());
  EXPECT_FALSE(OutputPatterns::parse({"/tmp/outputs/**", "/tmp/outputs2/**"})->are_usual());
  EXPECT_FALSE(OutputPatterns::parse({"/tmp/out*/**"})->are_usual());
}

TEST(OutputPatterns, ANameLeadsBackToItsFile) {
  OutputPatterns patterns = OutputPatterns::parse({"/home/user/*.csv", "/tmp/outputs/**"}).value();
  EXPECT_EQ(patterns.patterns()[0].directory, "/tmp/outputs");
  EXPECT_EQ(OutputPatterns::name_of("/home/user/a.csv"), "home/user/a.csv");
  EXPECT_EQ(OutputPatterns::name_of("/tmp/outputs/a.csv"), "a.csv");
  EXPECT_EQ(OutputPatterns::name_of("/tmp/outputs2/a"), "tmp/outputs2/a");
  EXPECT_EQ(patterns.paths_of("home/user/a.csv"),
            (Paths{"/tmp/outputs/home/user/a.csv", "/home/user/a.csv"}));
  // What no pattern names is not reached, and a file has one name.
  EXPECT_EQ(patterns.paths_of("home/user/key"), Paths{"/tmp/outputs/home/user/key"});
  EXPECT_EQ(patterns.paths_of("tmp/outputs/a"), Paths{"/tmp/outputs/tmp/outputs/a"});
  EXPECT_TRUE(OutputPatterns::parse({"/home/*.csv"})->paths_of("etc/shadow").empty());
}

TEST(OutputPatterns, AMalformedOneIsAnError) {
  EXPECT_FALSE(OutputPatterns::parse({"/tmp/[a"}).ok());
  EXPECT_FALSE(OutputPatterns::parse({"relative/*"}).ok());
  EXPECT_FALSE(OutputPatterns::parse({"name"}).ok());
}

}  // namespace
}  // namespace atl::sandbox
