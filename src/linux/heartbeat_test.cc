#include "linux/heartbeat.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/lived_time.h"

namespace atl::linux {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A process that is asked, in this one: its loop turns when the test calls beat().
class Asked : public testing::Test {
 protected:
  ~Asked() override { std::filesystem::remove_all(directory_); }

  static std::string make_folder() {
    char name[] = "/tmp/atoll-heartbeat-test-XXXXXX";
    ATOLL_CHECK(mkdtemp(name) != nullptr);
    return name;
  }
  Heartbeat listen() { return Heartbeat::open_at(folder_.get(), "x", geteuid()).value(); }
  static bool is_asked(const Heartbeat& heartbeat) {
    pollfd waiting = {.fd = heartbeat.fd(), .events = POLLIN, .revents = 0};
    return poll(&waiting, 1, 0) == 1;
  }

  std::string directory_ = make_folder();
  Fd folder_ = open_file(directory_, O_PATH | O_DIRECTORY).value();
  HeartbeatWatch watch_{directory_, "x"};
};

TEST_F(Asked, WhoseLoopTurnsIsNeverSilent) {
  Heartbeat heartbeat = listen();
  watch_.look(seconds(1));
  for (int turn = 0; turn < 20; ++turn) {
    EXPECT_TRUE(is_asked(heartbeat));
    heartbeat.beat();
    watch_.look(seconds(1));
    EXPECT_EQ(watch_.silence().count(), 0);
  }
  EXPECT_TRUE(watch_.has_answered());
}

TEST_F(Asked, WhoseLoopStandsStillIsSilentForAsLongAsItDoes) {
  Heartbeat heartbeat = listen();
  watch_.look(seconds(1));
  EXPECT_EQ(watch_.silence(), seconds(0));  // only just asked
  for (int turn = 0; turn < 9; ++turn) watch_.look(seconds(1));
  EXPECT_EQ(watch_.silence(), seconds(9));
  heartbeat.beat();
  watch_.look(seconds(1));
  EXPECT_EQ(watch_.silence(), seconds(0));
}

TEST_F(Asked, WhoDoesNotRunIsAbsentAndNotSilent) {
  watch_.look(seconds(1));
  watch_.look(seconds(1));
  EXPECT_EQ(watch_.absence(), seconds(2));
  EXPECT_EQ(watch_.silence(), seconds(0));
  Heartbeat heartbeat = listen();
  watch_.look(seconds(1));
  heartbeat.beat();
  watch_.look(seconds(1));
  EXPECT_EQ(watch_.absence(), seconds(0));
  heartbeat.close();
  watch_.look(seconds(1));  // it ended before it answered, which is no answer
  EXPECT_EQ(watch_.absence(), seconds(1));
}

TEST_F(Asked, TheNextOneTakesTheNameOfTheLast) {
  listen().close();
  Heartbeat heartbeat = listen();
  watch_.look(seconds(1));
  EXPECT_TRUE(is_asked(heartbeat));
  struct stat status;
  ASSERT_EQ(stat((directory_ + "/x.heartbeat").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(Asked, AChildThatKeptTheSocketOfTheLastIsNotTakenForTheNext) {
  Heartbeat kept = listen();
  watch_.look(seconds(1));
  Heartbeat heartbeat = listen();
  for (int turn = 0; turn < 4; ++turn) {
    watch_.look(seconds(1));
    heartbeat.beat();
  }
  watch_.look(seconds(1));
  EXPECT_EQ(watch_.silence(), seconds(0));
  EXPECT_TRUE(watch_.has_answered());
}

TEST_F(Asked, AnswersWithoutAFreeDescriptor) {
  Heartbeat heartbeat = listen();
  watch_.look(seconds(1));
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = {.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<Fd> all;
  for (Fd next(dup(heartbeat.fd())); next; next = Fd(dup(heartbeat.fd())))
    all.push_back(std::move(next));
  heartbeat.beat();
  EXPECT_FALSE(is_asked(heartbeat));
  all.clear();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  watch_.look(seconds(1));
  EXPECT_TRUE(watch_.has_answered());
}

TEST(LivedTime, DoesNotCountATimeInWhichThisProcessStoodStill) {
  FakeClock clock;
  LivedTime lived(seconds(2));
  EXPECT_EQ(lived.look(clock.steady_now()), milliseconds(0));
  clock.advance(seconds(1));
  EXPECT_EQ(lived.look(clock.steady_now()), seconds(1));
  clock.advance(std::chrono::hours(8));
  EXPECT_EQ(lived.look(clock.steady_now()), seconds(2));
  clock.advance(milliseconds(300));
  EXPECT_EQ(lived.look(clock.steady_now()), milliseconds(300));
}

}  // namespace
}  // namespace atl::linux
