#include "cli/doctor/report.h"

#include <boost/json/array.hpp>
#include <gtest/gtest.h>

namespace atl::cli {
namespace {

Finding finding(std::string name, FindingClass kind, FindingState state) {
  bool ok = state == FindingState::kOk;
  return {std::move(name), kind, state, "", ok ? "" : "do this"};
}

TEST(Report, TheJailIsUsableWhenAllThatIsRequiredIsThere) {
  Report report({finding("kernel", FindingClass::kRequired, FindingState::kOk),
                 finding("landlock", FindingClass::kExtra, FindingState::kMissing),
                 finding("memory", FindingClass::kAdvice, FindingState::kMissing)});
  EXPECT_TRUE(report.jail_usable());
}

TEST(Report, TheJailIsNotUsableWithoutARequiredThing) {
  Report report({finding("kernel", FindingClass::kRequired, FindingState::kMissing),
                 finding("seccomp", FindingClass::kRequired, FindingState::kUnknown)});
  EXPECT_FALSE(report.jail_usable());
  EXPECT_EQ(report.drivers.front().reason, "missing: kernel");
}

TEST(Report, WhatIsUnknownIsNotTakenForUsable) {
  Report report({finding("kernel", FindingClass::kRequired, FindingState::kUnknown)});
  EXPECT_FALSE(report.jail_usable());
  EXPECT_EQ(report.drivers.front().reason, "unknown: kernel");
  EXPECT_TRUE(to_json(report).at("drivers").at(0).at("usable").is_null());
}

TEST(Report, AMachineNeedsAJailAndItsImage) {
  EXPECT_EQ(Report(Findings{}).drivers[1].reason, "missing: gvisor");
  EXPECT_EQ(Report(Findings{}).drivers[2].reason, "missing: microvm");
  Finding sentry = finding("gvisor", FindingClass::kExtra, FindingState::kOk);
  EXPECT_EQ(Report({sentry}).drivers[1].usable, FindingState::kOk);
  EXPECT_EQ(Report({sentry}).drivers[2].usable, FindingState::kMissing);
  Finding missing = finding("microvm", FindingClass::kExtra, FindingState::kMissing);
  missing.found = "the image that runs it is not built";
  EXPECT_EQ(Report({missing}).drivers[2].reason, "the image that runs it is not built");
  Finding monitor = finding("microvm", FindingClass::kExtra, FindingState::kOk);
  EXPECT_EQ(Report({monitor}).drivers[2].usable, FindingState::kOk);
  Finding kernel = finding("kernel", FindingClass::kRequired, FindingState::kMissing);
  EXPECT_EQ(Report({monitor, kernel}).drivers[2].reason, "missing: kernel");
}

TEST(Report, TextJoinsWhatIsWellAndEndsWithWhatToDo) {
  Report report({finding("namespace.user", FindingClass::kRequired, FindingState::kOk),
                 finding("namespace.pid", FindingClass::kRequired, FindingState::kOk),
                 finding("namespace.net", FindingClass::kRequired, FindingState::kMissing)});
  EXPECT_EQ(to_text(report),
            "jail     not usable: missing: namespace.net\n"
            "gvisor   not usable: missing: namespace.net\n"
            "microvm  not usable: missing: namespace.net\n"
            "required\n"
            "  ok       namespace      user, pid\n"
            "  missing  namespace.net  \n"
            "extra\n"
            "host\n"
            "advice\n"
            "  namespace.net  do this\n");
}

TEST(Report, TextGathersPackagesIntoOneCommand) {
  Finding erofs = finding("program.mkfs.erofs", FindingClass::kExtra, FindingState::kMissing);
  erofs.remedy = "apt-get install erofs-utils";
  Finding runsc = finding("program.runsc", FindingClass::kExtra, FindingState::kMissing);
  runsc.remedy = "apt-get install runsc";
  EXPECT_NE(to_text(Report({erofs, runsc})).find("apt-get install erofs-utils runsc\n"),
            std::string::npos);
}

}  // namespace
}  // namespace atl::cli
