#include "warden/uid_ranges.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "base/file.h"
#include "warden/inventory.h"
#include "warden/testing/fixture_test.h"

namespace atl::warden {
namespace {

using testing::Directories;

class UidRanges : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: the registry is root's";
    auto host = open_host(directories_.options());
    ASSERT_TRUE(host.ok()) << host.error().message();
    host_.emplace(std::move(*host));
  }

  std::string entry_of(uid_t first) {
    return "/run/atoll-uid-ranges/" + std::to_string((first - kFirstUid) / kUidsPerRange);
  }

  Directories directories_;
  std::optional<Host> host_;
};

TEST_F(UidRanges, AreAlignedAndNeverTheSame) {
  std::set<uid_t> taken;
  std::vector<SandboxId> ids;
  for (int i = 0; i < 50; ++i) {
    ids.push_back(SandboxId::draw());
    auto record = create_record(*host_, ids.back());
    ASSERT_TRUE(record.ok());
    auto first = take_uid_range(*host_, ids.back(), record->directory.get());
    ASSERT_TRUE(first.ok()) << first.error().message();
    EXPECT_GE(*first, kFirstUid);
    EXPECT_EQ((*first - kFirstUid) % kUidsPerRange, 0u);
    EXPECT_TRUE(taken.insert(*first).second);
  }
  for (const SandboxId& id : ids) {
    auto record = lock_record(*host_, id);
    ASSERT_TRUE(record.ok() && record->has_value());
    EXPECT_TRUE(free_uid_range(*host_, id, (*record)->directory.get()).ok());
  }
  for (uid_t first : taken) EXPECT_NE(access(entry_of(first).c_str(), F_OK), 0);
}

TEST_F(UidRanges, OnlyTheOwnersRangeIsFreed) {
  SandboxId owner = SandboxId::draw(), other = SandboxId::draw();
  auto record = create_record(*host_, owner);
  ASSERT_TRUE(record.ok());
  auto first = take_uid_range(*host_, owner, record->directory.get());
  ASSERT_TRUE(first.ok());
  // A note that names somebody else's range, as a crash at the wrong moment leaves it.
  EXPECT_TRUE(free_uid_range(*host_, other, record->directory.get()).ok());
  EXPECT_EQ(access(entry_of(*first).c_str(), F_OK), 0);
  EXPECT_TRUE(free_uid_range(*host_, owner, record->directory.get()).ok());
  EXPECT_NE(access(entry_of(*first).c_str(), F_OK), 0);
}

TEST_F(UidRanges, StaleOnesAreFreedAndLiveOnesKept) {
  SandboxId live = SandboxId::draw(), dead = SandboxId::draw();
  auto live_record = create_record(*host_, live), dead_record = create_record(*host_, dead);
  ASSERT_TRUE(live_record.ok() && dead_record.ok());
  auto live_first = take_uid_range(*host_, live, live_record->directory.get());
  auto dead_first = take_uid_range(*host_, dead, dead_record->directory.get());
  ASSERT_TRUE(live_first.ok() && dead_first.ok());
  ASSERT_TRUE(remove_record(*host_, dead).ok());
  EXPECT_TRUE(free_stale_uid_ranges(*host_).ok());
  EXPECT_EQ(access(entry_of(*live_first).c_str(), F_OK), 0);
  EXPECT_NE(access(entry_of(*dead_first).c_str(), F_OK), 0);
  EXPECT_TRUE(free_uid_range(*host_, live, live_record->directory.get()).ok());
}

// As `down` of another service does when it had the last range.
TEST_F(UidRanges, AreTakenWhileOthersRemoveTheEmptyRegistry) {
  std::jthread other([](std::stop_token stop) {
    while (!stop.stop_requested()) EXPECT_TRUE(remove_empty_registry().ok());
  });
  SandboxId id = SandboxId::draw();
  auto record = create_record(*host_, id);
  ASSERT_TRUE(record.ok());
  for (int i = 0; i < 200; ++i) {
    auto first = take_uid_range(*host_, id, record->directory.get());
    ASSERT_TRUE(first.ok()) << first.error().message();
    ASSERT_EQ(access(entry_of(*first).c_str(), F_OK), 0) << "taken in a registry that is gone";
    ASSERT_TRUE(free_uid_range(*host_, id, record->directory.get()).ok());
  }
}

}  // namespace
}  // namespace atl::warden
