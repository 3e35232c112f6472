#include "linux/loop_device.h"

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/eventually.h"
#include "base/file.h"

namespace atl::linux {
namespace {

TEST(LoopDevice, IsFoundByItsFileAndDetachedWithItsLastUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  char path[] = "/tmp/atoll-loop-test-XXXXXX";
  Fd file(mkostemp(path, O_CLOEXEC));
  ASSERT_TRUE(file.valid());
  ASSERT_EQ(ftruncate(file.get(), 1 << 20), 0);
  auto none = find_loop_device(file.get());
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
  {
    auto device = attach_loop_device(file.get(), LoopAccess::kReadWrite);
    ASSERT_TRUE(device.ok()) << device.error().message();
    auto found = find_loop_device(file.get());
    ASSERT_TRUE(found.ok() && found->has_value());
    EXPECT_EQ((*found)->path, device->path);
    auto shared = share_loop_device(file.get(), LoopAccess::kReadWrite);
    ASSERT_TRUE(shared.ok());
    EXPECT_EQ(shared->path, device->path);
  }
  // The kernel detaches in the background.
  EXPECT_TRUE(eventually([&] {
    auto found = find_loop_device(file.get());
    return found.ok() && !found->has_value();
  }));
  unlink(path);
}

TEST(LoopDevice, IsSharedAlsoWhenReadOnly) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  char path[] = "/tmp/atoll-loop-test-XXXXXX";
  Fd file(mkostemp(path, O_CLOEXEC));
  ASSERT_TRUE(file.valid());
  unlink(path);
  ASSERT_EQ(ftruncate(file.get(), 1 << 20), 0);
  auto first = share_loop_device(file.get(), LoopAccess::kReadOnly);
  ASSERT_TRUE(first.ok()) << first.error().message();
  auto second = share_loop_device(file.get(), LoopAccess::kReadOnly);
  ASSERT_TRUE(second.ok()) << second.error().message();
  EXPECT_EQ(second->path, first->path);
}

}  // namespace
}  // namespace atl::linux
