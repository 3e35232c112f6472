#include "agent/sentry_release.h"

#include <gtest/gtest.h>

namespace atl::agent {
namespace {

constexpr std::chrono::sys_days kNow =
    std::chrono::year(2025) / std::chrono::month(7) / std::chrono::day(29);

std::string status_of(const std::string& version) {
  return "Package: libc6\nStatus: install ok installed\nVersion: 2.41-12\n\n"
         "Package: runsc\nStatus: install ok installed\nVersion: " +
         version + "\n\nPackage: sed\nVersion: 4.9-2\n";
}

std::string told(const std::string& status, const std::string& record = "") {
  std::string text;
  for (const linux::Fact& fact : sentry_release({.go_program = record, .packages = status}, kNow))
    text += (text.empty() ? "" : " ") + fact.value;
  return text;
}

TEST(SentryRelease, IsTheVersionOfThePackageAndItsAge) {
  EXPECT_EQ(told(status_of("0.0~20240729.0-4")), "0.0~20240729.0-4 365");
  EXPECT_EQ(told(status_of("1.2.3")), "1.2.3");
  EXPECT_EQ(told(status_of("99999999")), "99999999");
}

TEST(SentryRelease, OfAGoModuleIsItsVersionWhateverPackagesThereAre) {
  std::string record =
      "/usr/bin/runsc gvisor.dev/gvisor v0.0.0-20250719035102-160fafc42237 h1:x go1.26.11\n";
  EXPECT_EQ(told(status_of("0.0~20240729.0-4"), record), "v0.0.0-20250719035102-160fafc42237 10");
  EXPECT_EQ(told(status_of("0.0~20240729.0-4"), "/usr/bin/other example.org/other v1.2.3\n"),
            "unknown");
  EXPECT_EQ(told("", "/usr/bin/runsc gvisor.dev/gvisor 1\tfact h1:x\n"), "unknown");
}

TEST(SentryRelease, IsUnknownWhereNothingPlainIsSaid) {
  EXPECT_EQ(told(""), "unknown");
  EXPECT_EQ(told("Package: runsc\n\nVersion: 1\n"), "unknown");
  EXPECT_EQ(told("Package: not-Package: runsc\nVersion: 1\n"), "unknown");
  EXPECT_EQ(told(status_of("1\tfact")), "unknown");
  EXPECT_EQ(told(status_of(std::string(65, '1'))), "unknown");
}

}  // namespace
}  // namespace atl::agent
