#include "store/uploads.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "store/sha256.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

class UploadsTest : public testing::Test {
 protected:
  void put(TenantId tenant, const Digest& name, std::string_view text) {
    Arrival arrival = uploads_.begin(tenant).value();
    ASSERT_TRUE(arrival.write(text).ok());
    Fd file = arrival.take();
    ASSERT_TRUE(uploads_.keep(tenant, name, file).ok());
  }
  std::string get(TenantId tenant, const Digest& name) {
    auto file = uploads_.find(tenant, name);
    return file ? read_all(file->get(), 1000).value() : "nothing";
  }

  TestDirectory directory_;
  Uploads uploads_ = Uploads::open(directory_.path() + "/uploads").value();
  TenantId other_ = *TenantId::from_number(7);
  Digest a_ = sha256("a"), b_ = sha256("b");
};

TEST_F(UploadsTest, BelongToOneTenantAndAreReplaced) {
  put(kLocalTenant, a_, "one");
  EXPECT_EQ(get(kLocalTenant, a_), "one");
  EXPECT_EQ(get(other_, a_), "nothing");
  EXPECT_EQ(get(kLocalTenant, b_), "nothing");
  put(kLocalTenant, a_, "two");
  EXPECT_EQ(get(kLocalTenant, a_), "two");
}

TEST_F(UploadsTest, AreKeptForADay) {
  put(kLocalTenant, a_, "one");
  WallTime now = std::chrono::system_clock::now();
  ASSERT_TRUE(uploads_.sweep(now + std::chrono::hours(23)).ok());
  EXPECT_EQ(get(kLocalTenant, a_), "one");
  ASSERT_TRUE(uploads_.sweep(now + std::chrono::hours(25)).ok());
  EXPECT_EQ(get(kLocalTenant, a_), "nothing");
}

TEST_F(UploadsTest, TheOldestOfATenantGivesWay) {
  for (const Digest& name : {a_, b_}) {
    Fd file = uploads_.begin(kLocalTenant)->take();
    ASSERT_EQ(ftruncate(file.get(), 3ll << 30), 0);  // sparse
    bool older = name == a_;
    timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_NOW}, {.tv_sec = 0, .tv_nsec = UTIME_NOW}};
    if (older) times[1] = {.tv_sec = time(nullptr) - 100, .tv_nsec = 0};
    ASSERT_EQ(futimens(file.get(), times), 0);
    ASSERT_TRUE(uploads_.keep(kLocalTenant, name, file).ok());
  }
  put(other_, a_, "theirs");
  ASSERT_TRUE(uploads_.sweep(std::chrono::system_clock::now()).ok());
  EXPECT_FALSE(uploads_.find(kLocalTenant, a_).ok());
  EXPECT_TRUE(uploads_.find(kLocalTenant, b_).ok());
  EXPECT_EQ(get(other_, a_), "theirs");
}

// The order of the directory must not decide, and the clock may have been set back.
TEST_F(UploadsTest, TheLastOneStaysOfThoseOfOneMoment) {
  for (int64_t step : {0, -1000}) {
    time_t now = time(nullptr);
    std::vector<Digest> names;
    for (int i = 0; i < 8; ++i) {
      names.push_back(sha256(std::to_string(i)));
      Fd file = uploads_.begin(kLocalTenant)->take();
      ASSERT_EQ(ftruncate(file.get(), 3ll << 30), 0);  // sparse
      timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, {.tv_sec = now, .tv_nsec = 0}};
      ASSERT_EQ(futimens(file.get(), times), 0);
      ASSERT_TRUE(uploads_.keep(kLocalTenant, names.back(), file).ok());
      now += step;
    }
    ASSERT_TRUE(uploads_.sweep(std::chrono::system_clock::now()).ok());
    for (const Digest& name : names)
      EXPECT_EQ(uploads_.find(kLocalTenant, name).ok(), name == names.back());
  }
}

}  // namespace
}  // namespace atl::store
