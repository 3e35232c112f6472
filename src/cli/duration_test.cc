#include "cli/duration.h"

#include <gtest/gtest.h>

namespace atl::cli {
namespace {

using std::chrono::milliseconds;

TEST(Duration, ReadsEveryUnit) {
  EXPECT_EQ(parse_duration("500ms").value(), milliseconds(500));
  EXPECT_EQ(parse_duration("1s").value(), milliseconds(1000));
  EXPECT_EQ(parse_duration("2m").value(), milliseconds(120'000));
  EXPECT_EQ(parse_duration("168h").value(), milliseconds(kMaxDuration));
}

TEST(Duration, RefusesWhatIsNotANumberWithAUnit) {
  for (const char* text :
       {"", "5", "s", "1.5s", "-1s", "+1s", " 1s", "1 s", "1d", "1S", "1ss", "0x1s"})
    EXPECT_FALSE(parse_duration(text).ok()) << text;
}

TEST(Duration, RefusesZeroAndWhatIsOverAWeekAndWhatOverflows) {
  for (const char* text : {"0s", "169h", "18446744073709551615h", "99999999999999999999ms"})
    EXPECT_FALSE(parse_duration(text).ok()) << text;
}

}  // namespace
}  // namespace atl::cli
