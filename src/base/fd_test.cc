#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <type_traits>

#include <gtest/gtest.h>

namespace atl {
namespace {

bool is_open(int number) { return fcntl(number, F_GETFD) >= 0; }
int open_null() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

static_assert(!std::is_copy_constructible_v<Fd> && !std::is_copy_assignable_v<Fd>);

TEST(Fd, DestructorCloses) {
  int number = open_null();
  {
    Fd fd(number);
    EXPECT_TRUE(fd.valid());
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(Fd, DefaultOwnsNothing) {
  Fd fd;
  EXPECT_FALSE(fd);
  EXPECT_EQ(fd.get(), -1);
}

TEST(Fd, NumberZeroIsValid) {
  int saved = fcntl(0, F_DUPFD_CLOEXEC, 3);
  Fd zero(0);
  EXPECT_TRUE(zero.valid());
  EXPECT_EQ(zero.release(), 0);
  if (saved >= 0) close(saved);
}

TEST(Fd, MoveLeavesOneOwner) {
  int number = open_null();
  Fd first(number);
  Fd second(std::move(first));
  EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): what a move leaves is tested
  EXPECT_EQ(second.get(), number);
  EXPECT_TRUE(is_open(number));
}

TEST(Fd, MoveAssignmentClosesWhatItHeld) {
  int held = open_null();
  int taken = open_null();
  Fd fd(held);
  fd = Fd(taken);
  EXPECT_FALSE(is_open(held));
  EXPECT_TRUE(is_open(taken));
}

TEST(Fd, MoveToItselfKeepsTheDescriptor) {
  int number = open_null();
  Fd fd(number);
  Fd& same = fd;
  fd = std::move(same);
  EXPECT_EQ(fd.get(), number);
  EXPECT_TRUE(is_open(number));
}

TEST(Fd, ReleaseGivesTheDescriptorAway) {
  int number = open_null();
  {
    Fd fd(number);
    EXPECT_EQ(fd.release(), number);
  }
  EXPECT_TRUE(is_open(number));
  close(number);
}

TEST(Fd, ClosingKeepsErrno) {
  Fd never_open(1'000'000);  // close() gives EBADF
  errno = ENOSPC;
  never_open.reset();
  EXPECT_EQ(errno, ENOSPC);
}

}  // namespace
}  // namespace atl
