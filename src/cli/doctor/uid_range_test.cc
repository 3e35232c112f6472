#include "cli/doctor/uid_range.h"

#include <gtest/gtest.h>

namespace atl::cli {
namespace {

using Names = std::vector<std::string>;

TEST(UidRange, FindsUsersWithin) {
  EXPECT_EQ(find_claimed_ids("root:x:0:0::/:/bin/sh\nlow:x:1073741823:1::/:\n"), Names{});
  EXPECT_EQ(find_claimed_ids("first:x:1073741824:1::/:\nlast:x:1610612735:1::/:\n"),
            (Names{"first", "last"}));
  EXPECT_EQ(find_claimed_ids("above:x:1610612736:1::/:\nbroken\nword:x:many:1\n"), Names{});
}

TEST(UidRange, FindsSubordinateRangesThatOverlap) {
  EXPECT_EQ(find_claimed_ranges("user:100000:65536\n"), Names{});
  EXPECT_EQ(find_claimed_ranges("touches:1073676288:65536\n"), Names{});
  EXPECT_EQ(find_claimed_ranges("enters:1073676288:65537\ncovers:0:4294967295\n"),
            (Names{"enters", "covers"}));
  EXPECT_EQ(find_claimed_ranges("within:1200000000:1\nempty:1200000000:0\n"), Names{"within"});
}

}  // namespace
}  // namespace atl::cli
