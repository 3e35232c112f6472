#include "linux/directory_lock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "base/file.h"

namespace atl::linux {
namespace {

class DirectoryLocks : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = mkdtemp(name_);
    directory_ = *open_file(path_, O_PATH | O_DIRECTORY);
  }
  void TearDown() override { rmdir(path_.c_str()); }
  bool is_free() const {
    Fd other = *open_file(path_, O_RDONLY | O_DIRECTORY);
    return flock(other.get(), LOCK_EX | LOCK_NB) == 0;
  }

  char name_[32] = "/tmp/atoll-lock-test-XXXXXX";
  std::string path_;
  Fd directory_;
};

TEST_F(DirectoryLocks, KeepsOthersOutUntilItIsDestroyed) {
  {
    auto lock = DirectoryLock::acquire(directory_.get());
    ASSERT_TRUE(lock.ok());
    EXPECT_FALSE(is_free());
  }
  EXPECT_TRUE(is_free());
}

TEST_F(DirectoryLocks, IsFreedAlsoWhileAForkedProcessHasACopy) {
  int gate[2];
  ASSERT_EQ(pipe2(gate, O_CLOEXEC), 0);
  pid_t child = -1;
  {
    auto lock = DirectoryLock::acquire(directory_.get());
    ASSERT_TRUE(lock.ok());
    child = fork();
    if (child == 0) {
      char byte;
      close(gate[1]);
      _exit(read(gate[0], &byte, 1) == 0 ? 0 : 1);
    }
  }
  EXPECT_TRUE(is_free());
  close(gate[0]);
  close(gate[1]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace atl::linux
