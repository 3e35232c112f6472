#include "linux/lock_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/fixture_test.h"
#include "cli/process.h"
#include "linux/pidfd.h"

namespace atl::cli {
namespace {

class HeldLock : public testing::Test {
 protected:
  HeldLock() {
    Fd python = open_file(kPython, O_PATH).value();
    holder_ = start_program({.program = python.get(),
                             .arguments = {"python3", "-c", kHoldLock, lock_, dir_ / "pids"},
                             .identity = std::nullopt})
                  .value();
    EXPECT_TRUE(eventually([&] { return !read_pids(dir_ / "pids").empty(); }));
  }
  ~HeldLock() override {
    static_cast<void>(linux::send_signal(holder_.pidfd.get(), SIGKILL));
    waitpid(holder_.pid, nullptr, 0);
  }
  void kill_holder() {
    EXPECT_TRUE(linux::send_signal(holder_.pidfd.get(), SIGKILL).ok());
    EXPECT_TRUE(wait_for_end(holder_.pidfd.get(), test_timeout()).value());
  }

  TempDir dir_;
  std::string lock_ = dir_ / "lock";
  StartedProcess holder_{};
};

TEST_F(HeldLock, TellsWhoHoldsIt) {
  auto found = linux::find_lock_holder(lock_, geteuid()).value();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->pid, holder_.pid);
}

TEST_F(HeldLock, CannotBeTakenByASecond) {
  auto second = linux::LockFile::acquire(lock_);
  EXPECT_EQ(second.error().code(), Code::kConflict);
  EXPECT_NE(second.error().message().find(std::to_string(holder_.pid)), std::string::npos);
}

TEST_F(HeldLock, AHolderOfAnotherUserIsRefused) {
  EXPECT_EQ(linux::find_lock_holder(lock_, geteuid() + 1).error().code(), Code::kDenied);
}

TEST_F(HeldLock, IsFreeAfterKillNine) {
  kill_holder();
  EXPECT_FALSE(linux::find_lock_holder(lock_, geteuid()).value().has_value());
  EXPECT_TRUE(linux::LockFile::acquire(lock_).ok());
}

TEST(LockFile, NobodyHoldsAnAbsentFile) {
  EXPECT_FALSE(
      linux::find_lock_holder("/tmp/atoll-cli-test-absent", geteuid()).value().has_value());
}

TEST(LockFile, DoesNotFollowALinkNorWaitForAFifo) {
  TempDir dir;
  write_text(dir / "real", "");
  ASSERT_EQ(symlink((dir / "real").c_str(), (dir / "link").c_str()), 0);
  EXPECT_FALSE(linux::find_lock_holder(dir / "link", geteuid()).ok());
  EXPECT_FALSE(linux::LockFile::acquire(dir / "link").ok());
  ASSERT_EQ(mkfifo((dir / "fifo").c_str(), 0600), 0);
  EXPECT_FALSE(linux::find_lock_holder(dir / "fifo", geteuid()).value().has_value());
}

}  // namespace
}  // namespace atl::cli
