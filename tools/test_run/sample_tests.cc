// Tests that end in every way there is, for test_run_test.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

TEST(Sample, Passes) {}
TEST(Sample, Fails) { EXPECT_EQ(6 * 7, 54); }
TEST(Sample, Skips) { GTEST_SKIP() << "there is no such thing here"; }

// By a file of the test: absent at the first try.
TEST(Sample, PassesTheSecondTime) {
  const char* path = getenv("SAMPLE_FILE");
  ASSERT_NE(path, nullptr);
  bool is_there = access(path, F_OK) == 0;
  EXPECT_TRUE(is_there);
  if (!is_there) EXPECT_EQ(mknod(path, S_IFREG | 0600, 0), 0);
}

TEST(SampleDeath, Dies) { abort(); }
TEST(SampleDeath, IsNotComeTo) {}
