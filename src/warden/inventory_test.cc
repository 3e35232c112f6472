#include "warden/inventory.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>

#include <gtest/gtest.h>

#include "base/eventually.h"
#include "warden/testing/fixture_test.h"

namespace atl::warden {
namespace {

using testing::Directories;

class Inventory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: the directories must be root's";
    auto host = open_host(directories_.options());
    ASSERT_TRUE(host.ok()) << host.error().message();
    host_.emplace(std::move(*host));
  }
  Directories directories_;
  std::optional<Host> host_;
};

TEST_F(Inventory, ARecordExistsOnce) {
  SandboxId id = SandboxId::draw();
  ASSERT_TRUE(create_record(*host_, id).ok());
  auto again = create_record(*host_, id);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().system_errno(), EEXIST);
  EXPECT_TRUE(remove_record(*host_, id).ok());
  EXPECT_TRUE(remove_record(*host_, id).ok()) << "absence is a success";
  EXPECT_FALSE(record_exists(*host_, id));
}

TEST_F(Inventory, AnUnknownRecordHasNoLock) {
  auto lock = lock_record(*host_, SandboxId::draw());
  ASSERT_TRUE(lock.ok());
  EXPECT_FALSE(lock->has_value());
}

// A line of proc_locks(5) with an arrow: "1: -> FLOCK  ADVISORY  WRITE <pid> …".
bool waits_for_a_lock(pid_t pid) {
  std::istringstream locks(testing::read_text("/proc/locks"));
  for (std::string line; std::getline(locks, line);)
    if (line.find("->") != line.npos && line.find(" " + std::to_string(pid) + " ") != line.npos)
      return true;
  return false;
}

TEST_F(Inventory, AWaiterSeesThatTheRecordWasRemovedMeanwhile) {
  SandboxId id = SandboxId::draw();
  auto record = create_record(*host_, id);
  ASSERT_TRUE(record.ok());
  pid_t waiter = fork();
  if (waiter == 0) {
    record->directory.reset();
    auto lock = lock_record(*host_, id);
    _exit(lock.ok() && !lock->has_value() ? 0 : 1);
  }
  EXPECT_TRUE(eventually([&] { return waits_for_a_lock(waiter); }));
  ASSERT_TRUE(remove_record(*host_, id).ok());
  record->directory.reset();
  int status = 0;
  waitpid(waiter, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(Inventory, ListsIdsOnly) {
  SandboxId id = SandboxId::draw();
  ASSERT_TRUE(create_record(*host_, id).ok());
  ASSERT_EQ(mkdirat(host_->isolates.get(), "not-an-id", 0700), 0);
  auto ids = list_records(*host_);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(*ids, std::vector{id});
}

}  // namespace
}  // namespace atl::warden
