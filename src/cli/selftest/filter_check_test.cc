#include "cli/selftest/filter_check.h"

#include <errno.h>
#include <linux/audit.h>

#include <algorithm>

#include <gtest/gtest.h>

namespace atl::cli::selftest {
namespace {

bool mentions(const std::vector<std::string>& findings, std::string_view text) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const std::string& line) { return line.find(text) != line.npos; });
}

TEST(FilterCheck, NamesWhatAnOpenFilterAllows) {
  auto findings = check_filter([](const seccomp_data&) { return SECCOMP_RET_ALLOW; });
  for (std::string_view text : {"allows ptrace", "allows io_uring_setup", "allows clone3",
                                "unshare of a user", "family 38", "32-bit gate", "x32"})
    EXPECT_TRUE(mentions(findings, text)) << text;
  EXPECT_FALSE(mentions(findings, "refuses"));
}

TEST(FilterCheck, NamesWhatAClosedFilterRefuses) {
  auto findings = check_filter([](const seccomp_data&) { return SECCOMP_RET_ERRNO | EPERM; });
  EXPECT_TRUE(mentions(findings, "refuses read"));
  EXPECT_TRUE(mentions(findings, "refuses family 1"));
  EXPECT_FALSE(mentions(findings, "allows"));
}

TEST(FilterCheck, ARefusalThatSaysSuccessIsNone) {
  auto findings = check_filter([](const seccomp_data&) { return SECCOMP_RET_ERRNO; });
  EXPECT_TRUE(mentions(findings, "allows ptrace"));
}

TEST(FilterCheck, SeesAFilterThatForgetsTheArchitecture) {
  auto findings = check_filter([](const seccomp_data& data) {
    return data.arch == AUDIT_ARCH_I386 ? SECCOMP_RET_ALLOW : SECCOMP_RET_KILL_PROCESS;
  });
  EXPECT_TRUE(mentions(findings, "allows read of the 32-bit gate"));
  EXPECT_FALSE(mentions(findings, "x32"));
}

}  // namespace
}  // namespace atl::cli::selftest
