#include "cli/selftest/judgement.h"

#include <gtest/gtest.h>

namespace atl::cli::selftest {
namespace {

namespace json = boost::json;

json::object ended(const char* verdict, int exit_code, const char* output) {
  return {{"verdict", verdict}, {"exit_code", exit_code}, {"stdout", output}, {"stderr", ""}};
}

Outcome outcome_of(const Victim& victim, const json::object& exec) {
  return judge(victim, exec).value().outcome;
}

TEST(Judgement, TakesAVictimsWord) {
  Victim victim;
  EXPECT_EQ(outcome_of(victim, ended("ok", 0, "")), Outcome::kHeld);
  EXPECT_EQ(outcome_of(victim, ended("nonzero", 1, "")), Outcome::kBroke);
  EXPECT_EQ(outcome_of(victim, ended("nonzero", 77, "")), Outcome::kSkipped);
}

TEST(Judgement, WhatProvesNothingIsUnjudged) {
  Victim victim;
  for (int code : {2, 3, 64, 126, 127})
    EXPECT_EQ(outcome_of(victim, ended("nonzero", code, "")), Outcome::kUnjudged) << code;
  for (const char* verdict : {"signal", "wall_time", "platform_error", "sandbox_gone", "oom"})
    EXPECT_EQ(outcome_of(victim, ended(verdict, -1, "")), Outcome::kUnjudged) << verdict;
  EXPECT_EQ(outcome_of(victim, {}), Outcome::kUnjudged);
}

TEST(Judgement, ALimitMustBeTheVerdict) {
  Victim victim;
  victim.verdicts = {"pids_limit"};
  EXPECT_EQ(outcome_of(victim, ended("pids_limit", 3, "")), Outcome::kHeld);
  EXPECT_EQ(outcome_of(victim, ended("nonzero", 3, "")), Outcome::kUnjudged);
  EXPECT_EQ(outcome_of(victim, ended("ok", 0, "")), Outcome::kUnjudged);
  EXPECT_EQ(outcome_of(victim, ended("pids_limit", 1, "")), Outcome::kBroke);
}

TEST(Judgement, AVictimsWordThatItWasStoppedCountsWhereItIsAskedFor) {
  Victim victim;
  victim.verdicts = {"pids_limit", "stopped"};
  EXPECT_EQ(outcome_of(victim, ended("nonzero", 3, "")), Outcome::kHeld);
  EXPECT_EQ(outcome_of(victim, ended("pids_limit", 3, "")), Outcome::kHeld);
  EXPECT_EQ(outcome_of(victim, ended("nonzero", 2, "")), Outcome::kUnjudged);
  EXPECT_EQ(outcome_of(victim, ended("nonzero", 1, "")), Outcome::kBroke);
}

TEST(Judgement, AnotherProgramsExitCodeIsNotAVictimsWord) {
  Victim victim;
  victim.command = "/victims/self-exe";
  victim.verdicts = {"any"};
  EXPECT_EQ(outcome_of(victim, ended("nonzero", 1, "")), Outcome::kHeld);
  EXPECT_EQ(outcome_of(victim, ended("platform_error", -1, "")), Outcome::kUnjudged);
}

TEST(Judgement, ShowsTheLineThatMatters) {
  Victim victim;
  auto judgement = judge(victim, ended("nonzero", 1, "one: refused\nBROKE: two\nthree: refused\n"));
  EXPECT_EQ(judgement->detail, "two");
}

TEST(Judgement, MoreOutputThanItsLimitIsABreach) {
  Victim victim;
  victim.limits = {{"output_bytes", 100}};
  json::object exec = ended("ok", 0, "");
  exec["stdout_bytes"] = 100;
  EXPECT_EQ(outcome_of(victim, exec), Outcome::kHeld);
  exec["stdout_bytes"] = 101;
  EXPECT_EQ(outcome_of(victim, exec), Outcome::kBroke);
}

}  // namespace
}  // namespace atl::cli::selftest
