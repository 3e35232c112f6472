#include "cli/doctor/resources.h"

#include <gtest/gtest.h>

#include "cli/doctor/privileges.h"

namespace atl::cli {
namespace {

TEST(Resources, ReadsAFieldOfMeminfo) {
  constexpr const char* kText = "MemTotal:  100 kB\nMemAvailable:    2048 kB\nHugePages_Total: 0\n";
  EXPECT_EQ(parse_meminfo(kText, "MemAvailable"), 2048u * 1024);
  EXPECT_EQ(parse_meminfo(kText, "MemFree"), std::nullopt);
  EXPECT_EQ(parse_meminfo("MemAvailable: lots kB\n", "MemAvailable"), std::nullopt);
}

TEST(Resources, TooLittleDiskIsMissing) {
  EXPECT_EQ(judge_disk("/x", uint64_t{1} << 40).state, FindingState::kOk);
  Finding little = judge_disk("/x", 1000);
  EXPECT_EQ(little.state, FindingState::kMissing);
  EXPECT_NE(little.remedy.find("/x"), std::string::npos);
}

TEST(Privileges, NamesWhatIsMissing) {
  constexpr uint64_t kAll = ~uint64_t{0};
  constexpr int kSysAdmin = 21;
  EXPECT_EQ(missing_capabilities(kAll), "");
  EXPECT_EQ(missing_capabilities(kAll & ~(uint64_t{1} << kSysAdmin)), "CAP_SYS_ADMIN");
}

}  // namespace
}  // namespace atl::cli
