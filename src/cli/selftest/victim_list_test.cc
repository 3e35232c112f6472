#include "cli/selftest/victim_list.h"

#include <gtest/gtest.h>

namespace atl::cli::selftest {
namespace {

const std::string kColumns =
    "name\tid\tuser\tverdict\tlimits\texec\tcwd\tcommand\ttimeout_ms\tsandbox\tabout\n";

TEST(VictimList, ReadsEveryColumn) {
  auto victims = parse_victims(kColumns +
                               "bomb\tRES-01\troot\toom|ok\tpids:8,cpu:2\ta:b\t/tmp\t/bin/x\t500\t"
                               "fresh\tSays what.\n");
  ASSERT_TRUE(victims.ok());
  const Victim& bomb = victims->at(0);
  EXPECT_EQ(bomb.name + " " + bomb.id + " " + bomb.about, "bomb RES-01 Says what.");
  EXPECT_EQ(bomb.users, std::vector<std::string>{"root"});
  EXPECT_EQ(bomb.verdicts, (std::vector<std::string>{"oom", "ok"}));
  EXPECT_EQ(bomb.limits[1], (std::pair<std::string, int64_t>("cpu", 2)));
  EXPECT_EQ(bomb.exec_fields[0].second, "b");
  EXPECT_EQ(bomb.timeout, std::chrono::milliseconds(500));
  EXPECT_EQ(bomb.place, Place::kFresh);
}

TEST(VictimList, ADashIsNothingAndBothIsTwo) {
  auto victims = parse_victims(kColumns + "a\tESC-01\tboth\t-\t-\t-\t-\t-\t1\tshared\tx\n");
  ASSERT_TRUE(victims.ok());
  EXPECT_EQ(victims->at(0).users, (std::vector<std::string>{"user", "root"}));
  EXPECT_TRUE(victims->at(0).verdicts.empty() && victims->at(0).limits.empty());
}

TEST(VictimList, SaysBehindWhichWallItProvesNothing) {
  auto victims = parse_victims(
      "name\tid\tuser\ttimeout_ms\tsandbox\tnot_behind\n"
      "a\tESC-01\troot\t1\tshared\tgvisor:has_none,microvm:other\n"
      "b\tESC-01\troot\t1\tshared\t-\n");
  ASSERT_TRUE(victims.ok());
  using Reasons = std::map<std::string, std::string>;
  EXPECT_EQ(victims->at(0).not_behind, (Reasons{{"gvisor", "has none"}, {"microvm", "other"}}));
  EXPECT_TRUE(victims->at(1).not_behind.empty());
}

TEST(VictimList, SaysHowItEndsBehindAnotherWall) {
  auto victims = parse_victims(
      "name\tid\tuser\ttimeout_ms\tsandbox\tinstead\n"
      "a\tESC-01\troot\t1\tshared\tgvisor:oom|stopped:it_is_fast\n");
  ASSERT_TRUE(victims.ok());
  const Victim::Instead& instead = victims->at(0).instead.at("gvisor");
  EXPECT_EQ(instead.verdicts, (std::vector<std::string>{"oom", "stopped"}));
  EXPECT_EQ(instead.why, "it is fast");
  EXPECT_FALSE(
      parse_victims("name\tid\tuser\ttimeout_ms\tsandbox\tinstead\n"
                    "a\tESC-01\troot\t1\tshared\tgvisor:oom\n"));
}

TEST(VictimList, RefusesWhatItDoesNotUnderstand) {
  for (const char* row : {"a\tESC-01\n", "a\tESC-01\tboth\t-\tpids\t-\t-\t-\t1\tshared\tx\n",
                          "a\tESC-01\tboth\t-\t-\t-\t-\t-\tsoon\tshared\tx\n",
                          "a\tESC-01\tboth\t-\t-\t-\t-\t-\t1\telsewhere\tx\n",
                          "-\tESC-01\tboth\t-\t-\t-\t-\t-\t1\tshared\tx\n", ""})
    EXPECT_FALSE(parse_victims(kColumns + row).ok()) << row;
}

}  // namespace
}  // namespace atl::cli::selftest
