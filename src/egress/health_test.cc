#include "egress/health.h"

#include <gtest/gtest.h>

namespace atl::egress {
namespace {

TEST(Health, ComesBackAsItWas) {
  Health health{.descriptors_limit = 1,
                .descriptors_used = 2,
                .sandboxes = 3,
                .sandboxes_limit = 4,
                .connections_refused = 5,
                .connections_idle_ended = 6};
  auto back = parse_health(encode_health(health));
  ASSERT_TRUE(back);
  EXPECT_EQ(encode_health(*back), encode_health(health));
  EXPECT_EQ(back->sandboxes_limit, 4u);
  EXPECT_FALSE(parse_health(encode_health(health) + "x"));
  EXPECT_FALSE(parse_health(""));
}

}  // namespace
}  // namespace atl::egress
