#include "agent/counters.h"

#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"

namespace atl::agent {
namespace {

Fd file_of(std::string_view text) {
  Fd file(memfd_create("counters", MFD_CLOEXEC));
  EXPECT_TRUE(write_all(file.get(), text).ok());
  return file;
}

TEST(Counters, FindsACountByItsWholeKeyOnly) {
  std::string_view text = "oom 3\noom_kill 12\nmy_max 5\nmax 7";
  EXPECT_EQ(find_count(text, "oom"), 3u);
  EXPECT_EQ(find_count(text, "oom_kill"), 12u);
  EXPECT_EQ(find_count(text, "max"), 7u);
  EXPECT_EQ(find_count(text, "oom_"), std::nullopt);
  EXPECT_EQ(find_count("max\nmax x\n", "max"), std::nullopt);
  EXPECT_EQ(find_count("", "max"), std::nullopt);
}

TEST(Counters, ReadsWhatIsCountedNow) {
  Fd memory = file_of("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  Fd writer(dup(memory.get()));
  auto counters = Counters::create(std::move(memory), file_of("max 4\n"), file_of("8192\n"),
                                   OfLeaves::kCounted);
  ASSERT_TRUE(counters.ok());
  EXPECT_EQ(counters->read().memory_kills, 1u);
  EXPECT_EQ(counters->read().refused_forks, 4u);
  EXPECT_EQ(counters->peak_memory_bytes(), 8192u);
  ASSERT_EQ(pwrite(writer.get(), "oom_kill 2\n", 11, 0), 11);
  EXPECT_EQ(counters->read().memory_kills, 2u);
  counters->explain_kill();
  EXPECT_EQ(counters->read().explained_kills, 1u);
}

TEST(Counters, WithoutACountOfKillsOrRefusalsThereIsNone) {
  EXPECT_FALSE(
      Counters::create(file_of("oom 1\n"), file_of("max 0\n"), Fd(), OfLeaves::kCounted).ok());
  EXPECT_FALSE(
      Counters::create(file_of("oom_kill 1\n"), file_of(""), Fd(), OfLeaves::kCounted).ok());
  auto no_peak =
      Counters::create(file_of("oom_kill 1\n"), file_of("max 0\n"), Fd(), OfLeaves::kCounted);
  ASSERT_TRUE(no_peak.ok());
  EXPECT_EQ(no_peak->peak_memory_bytes(), std::nullopt);
}

}  // namespace
}  // namespace atl::agent
