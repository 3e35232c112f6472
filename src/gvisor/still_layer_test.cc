#include "gvisor/still_layer.h"

#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "agent/still_files.h"
#include "linux/unix_socket.h"

namespace atl::gvisor {
namespace {

using microvm::RelayKind;
using Told = std::vector<RelayKind>;

class StillLayerTest : public ::testing::Test {
 protected:
  Fd ask() {
    auto pair = linux::make_socket_pair(SOCK_STREAM | SOCK_NONBLOCK);
    EXPECT_TRUE(pair.ok());
    layer_.begin(std::move(pair->theirs));
    return std::move(pair->ours);
  }
  static std::string take(const Fd& fd) {
    char bytes[100];
    ssize_t count = read(fd.get(), bytes, sizeof bytes);
    return count < 0 ? "" : count == 0 ? "(end)" : std::string(bytes, static_cast<size_t>(count));
  }
  bool watches() const {
    std::vector<pollfd> polls;
    layer_.add_watches(polls);
    return !polls.empty();
  }

  Told told_;
  StillLayer layer_{[this](RelayKind kind) { told_.push_back(kind); }};
};

TEST_F(StillLayerTest, IsStillWhenTheKeeperSaysSoAndIsForgottenWhenTaken) {
  Fd asker = ask();
  EXPECT_EQ(told_, Told{RelayKind::kKeepFiles});
  layer_.look();
  EXPECT_EQ(take(asker), "") << "the keeper has not answered";
  EXPECT_FALSE(watches());
  layer_.take_answer(0);
  EXPECT_EQ(take(asker), agent::kIsStill);
  EXPECT_TRUE(watches());
  ASSERT_EQ(write(asker.get(), "k", 1), 1);
  layer_.look();
  EXPECT_EQ(take(asker), agent::kGoesOn);
  EXPECT_EQ(take(asker), "(end)");
  EXPECT_EQ(told_, (Told{RelayKind::kKeepFiles, RelayKind::kFilesTaken}));
  EXPECT_FALSE(watches());
}

TEST_F(StillLayerTest, OfAKeeperThatFailsEndsTheAsker) {
  Fd asker = ask();
  layer_.take_answer(ENOSPC);
  EXPECT_EQ(take(asker), "(end)");
  EXPECT_EQ(told_, (Told{RelayKind::kKeepFiles, RelayKind::kFilesTaken}));
}

TEST_F(StillLayerTest, OfASentryThatRefusesSaysSo) {
  Fd asker = ask();
  layer_.take_answer(EIO);
  EXPECT_EQ(take(asker), agent::kCannot);
  EXPECT_EQ(take(asker), "(end)");
  EXPECT_EQ(told_, (Told{RelayKind::kKeepFiles, RelayKind::kFilesTaken}));
}

TEST_F(StillLayerTest, IsForgottenWhenItsAskerGoesAndTheNextIsServed) {
  Fd first = ask();
  Fd second = ask();
  EXPECT_EQ(told_, Told{RelayKind::kKeepFiles}) << "one at a time";
  layer_.take_answer(0);
  first.reset();
  layer_.look();
  EXPECT_EQ(told_, (Told{RelayKind::kKeepFiles, RelayKind::kFilesTaken, RelayKind::kKeepFiles}));
  layer_.take_answer(0);
  EXPECT_EQ(take(second), agent::kIsStill);
}

TEST_F(StillLayerTest, AnAnswerThatNobodyAskedForIsNothing) {
  layer_.take_answer(0);
  layer_.look();
  EXPECT_EQ(told_, Told{});
}

}  // namespace
}  // namespace atl::gvisor
