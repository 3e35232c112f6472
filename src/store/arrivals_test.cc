#include "store/arrivals.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

class ArrivalsTest : public testing::Test {
 protected:
  Arrival begin(TenantId tenant = kLocalTenant) { return arrivals_.begin(tenant).value(); }
  static std::string reason(Arrival& arrival, size_t bytes) {
    auto written = arrival.write(std::string(bytes, 'x'));
    return written ? "" : std::string(written.error().reason());
  }

  TestDirectory directory_;
  Arrivals arrivals_{directory_.path(), {.of_one = 10, .of_tenant = 15, .of_host = 20}};
  TenantId other_ = *TenantId::from_number(7);
};

TEST_F(ArrivalsTest, AreWholeWhenTheyAreTaken) {
  Arrival arrival = begin();
  ASSERT_TRUE(arrival.write("one ").ok());
  ASSERT_TRUE(arrival.write("two").ok());
  Fd file = arrival.take();
  ASSERT_EQ(lseek(file.get(), 0, SEEK_SET), 0);
  EXPECT_EQ(read_all(file.get(), 100).value(), "one two");
}

TEST_F(ArrivalsTest, HaveALimitEach) {
  Arrival arrival = begin();
  EXPECT_EQ(reason(arrival, 10), "");
  EXPECT_EQ(reason(arrival, 1), "archive_too_large");
}

TEST_F(ArrivalsTest, ShareThoseOfTheTenantAndTheHost) {
  Arrival first = begin(), second = begin(), third = begin(other_);
  EXPECT_EQ(reason(first, 10), "");
  EXPECT_EQ(reason(second, 6), "too_many_uploads");
  EXPECT_EQ(reason(second, 5), "");
  EXPECT_EQ(reason(third, 6), "too_many_uploads") << "of the host";
  EXPECT_EQ(reason(third, 5), "");
}

TEST_F(ArrivalsTest, GiveBackWhatTheyHeld) {
  {
    Arrival given_up = begin();
    EXPECT_EQ(reason(given_up, 10), "");
    Arrival moved = std::move(given_up);
    EXPECT_EQ(reason(moved, 0), "");
  }
  Arrival taken = begin();
  EXPECT_EQ(reason(taken, 10), "") << "what was given up counts no more";
  Fd file = taken.take();
  Arrival next = begin();
  EXPECT_EQ(reason(next, 10), "") << "what was taken counts no more";
}

}  // namespace
}  // namespace atl::store
