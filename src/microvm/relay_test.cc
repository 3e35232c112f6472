#include "microvm/relay.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "agent/still_files.h"
#include "linux/unix_socket.h"

namespace atl::microvm {
namespace {

linux::SocketPair make_pair() {
  auto pair = linux::make_socket_pair(SOCK_STREAM | SOCK_NONBLOCK);
  EXPECT_TRUE(pair.ok());
  return std::move(*pair);
}

linux::SocketPair make_notes() {
  auto pair = linux::make_socket_pair(SOCK_SEQPACKET);
  EXPECT_TRUE(pair.ok());
  return std::move(*pair);
}

// A keeper and a guest joined by a port, and the agent's ends of the connections that were made.
class RelayTest : public ::testing::Test {
 protected:
  RelayTest() : RelayTest(make_pair()) {}
  explicit RelayTest(linux::SocketPair port) : RelayTest(std::move(port), make_notes()) {}
  RelayTest(linux::SocketPair port, linux::SocketPair notes)
      : notes_(std::move(notes.ours)),
        keeper_(std::move(port.ours), LyingDown::kObeyed),
        guest_(std::move(port.theirs),
               {[this] { return connect(); }, [this](int64_t time_ns) { told_ns_ = time_ns; },
                std::move(notes.theirs), [this](Fd asker) { askers_.push_back(std::move(asker)); },
                [this](const Rebirth& told) { return be_reborn(told); },
                [this](int answer) { answers_.push_back(answer); }}) {}

  Result<Fd> connect() {
    EXPECT_GT(told_ns_, 1'700'000'000'000'000'000) << "it is not told the time";
    auto pair = make_pair();
    agents_.push_back(std::move(pair.ours));
    return std::move(pair.theirs);
  }
  Fd open() {
    auto pair = make_pair();
    keeper_.open(std::move(pair.theirs));
    return std::move(pair.ours);
  }
  void settle() {
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(keeper_.move_bytes().ok());
      ASSERT_TRUE(guest_.move_bytes().ok());
    }
  }
  static std::string take(const Fd& fd) {
    std::string all;
    char bytes[65536];
    for (ssize_t count; (count = recv(fd.get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
      all.append(bytes, static_cast<size_t>(count));
    return all;
  }
  static bool is_closed(const Fd& fd) {
    char byte;
    return recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }
  static void put(const Fd& fd, std::string_view text) {
    ASSERT_EQ(send(fd.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }

  void note(agent::RestNote note) {
    ASSERT_EQ(send(notes_.get(), &note, sizeof note, 0), static_cast<ssize_t>(sizeof note));
  }

  Result<void> be_reborn(const Rebirth& told) {
    if (!can_be_reborn_) return Error(Code::kUnavailable, "no");
    nonce_ = told.nonce;
    return {};
  }

  std::vector<Fd> agents_;
  std::vector<Fd> askers_;
  std::vector<int> answers_;
  bool can_be_reborn_ = true;
  std::array<unsigned char, agent::kNonceBytes> nonce_ = {};
  int64_t told_ns_ = 0;
  Fd notes_;
  Relay keeper_, guest_;
};

TEST_F(RelayTest, BytesGoBothWays) {
  Fd client = open();
  put(client, "to the agent");
  settle();
  ASSERT_EQ(agents_.size(), 1u);
  EXPECT_EQ(take(agents_[0]), "to the agent");
  put(agents_[0], "to the client");
  settle();
  EXPECT_EQ(take(client), "to the client");
}

TEST_F(RelayTest, AConnectionWaitsUntilTheGuestIsUpAndKnowsTheTime) {
  Fd client = open();
  put(client, "early");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(keeper_.move_bytes().ok());
  EXPECT_FALSE(keeper_.is_ready());
  settle();
  EXPECT_TRUE(keeper_.is_ready());
  EXPECT_GT(told_ns_, 1'700'000'000'000'000'000);
  ASSERT_EQ(agents_.size(), 1u);
  EXPECT_EQ(take(agents_[0]), "early");
}

TEST_F(RelayTest, TheNewestConnectionWinsAndHearsNothingOfTheOneBefore) {
  Fd first = open();
  settle();
  put(agents_[0], "for the first");
  (void)guest_.move_bytes();  // on its way when the second comes
  Fd second = open();
  settle();
  ASSERT_EQ(agents_.size(), 2u);
  EXPECT_TRUE(is_closed(first));
  EXPECT_TRUE(is_closed(agents_[0]));
  put(agents_[1], "for the second");
  settle();
  EXPECT_EQ(take(second), "for the second");
}

TEST_F(RelayTest, AnEndIsPassedOnAfterTheLastByte) {
  Fd client = open();
  settle();
  put(agents_[0], "last words");
  agents_[0].reset();
  settle();
  EXPECT_EQ(take(client), "last words");
  EXPECT_TRUE(is_closed(client));
  Fd next = open();
  put(next, "again");
  settle();
  EXPECT_EQ(take(agents_[1]), "again");
  next.reset();
  settle();
  EXPECT_TRUE(is_closed(agents_[1]));
}

TEST_F(RelayTest, WhoDoesNotReadHoldsUpWhatIsSentAndTheNextConnectionFreesIt) {
  Fd client = open();
  settle();
  size_t sent = 0;
  std::string chunk(4096, 'x');
  for (int i = 0; i < 4000; ++i) {
    ssize_t count = send(agents_[0].get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (count > 0) sent += static_cast<size_t>(count);
    ASSERT_TRUE(guest_.move_bytes().ok());
    ASSERT_TRUE(keeper_.move_bytes().ok());
  }
  EXPECT_LT(sent, 8u << 20) << "nothing bounds what is kept for a client that does not read";
  Fd second = open();
  settle();
  ASSERT_EQ(agents_.size(), 2u);
  put(agents_[1], "fresh");
  settle();
  EXPECT_EQ(take(second), "fresh");
}

TEST_F(RelayTest, ManyBytesArriveWhole) {
  Fd client = open();
  settle();
  std::string all, got;
  for (int i = 0; i < 300; ++i) {
    std::string chunk(1000, static_cast<char>('a' + i % 26));
    all += chunk;
    put(agents_[0], chunk);
    settle();
    got += take(client);
  }
  EXPECT_EQ(got, all);
}

TEST_F(RelayTest, TheGuestRestsWhenTheAgentHasReadAllAndSaidAll) {
  Fd client = open();
  put(client, "12345");
  settle();
  EXPECT_FALSE(keeper_.is_at_rest()) << "nobody said so";
  put(agents_[0], "an answer");
  note({1, 5});
  settle();
  EXPECT_TRUE(keeper_.is_at_rest());
  EXPECT_EQ(take(client), "an answer");
  put(client, "6");
  ASSERT_TRUE(keeper_.move_bytes().ok());
  EXPECT_FALSE(keeper_.is_at_rest()) << "it was sent more";
  settle();
  EXPECT_FALSE(keeper_.is_at_rest());
  note({1, 5});
  settle();
  EXPECT_FALSE(keeper_.is_at_rest()) << "a note from before the last byte";
  note({1, 6});
  settle();
  EXPECT_TRUE(keeper_.is_at_rest());
  Fd second = open();
  settle();
  EXPECT_FALSE(keeper_.is_at_rest()) << "of another connection";
  note({2, 0});
  settle();
  EXPECT_TRUE(keeper_.is_at_rest());
}

TEST_F(RelayTest, AGuestThatStoodStillIsToldTheTimeBeforeAnythingElse) {
  Fd client = open();
  note({1, 0});
  settle();
  ASSERT_TRUE(keeper_.is_at_rest());
  told_ns_ = 0;
  keeper_.stood_still();
  settle();
  EXPECT_TRUE(keeper_.is_at_rest()) << "nobody wants anything of it";
  EXPECT_EQ(told_ns_, 0);
  put(client, "a byte");
  settle();
  EXPECT_GT(told_ns_, 1'700'000'000'000'000'000);
  EXPECT_EQ(take(agents_[0]), "a byte");
  told_ns_ = 0;
  put(client, "another");
  settle();
  EXPECT_EQ(told_ns_, 0) << "it knows";
  keeper_.stood_still();
  Fd second = open();
  settle();
  EXPECT_GT(told_ns_, 0);
}

TEST_F(RelayTest, WhoLeavesAGuestThatRestsDoesNotWakeIt) {
  Fd client = open();
  note({1, 0});
  settle();
  ASSERT_TRUE(keeper_.is_at_rest());
  EXPECT_FALSE(keeper_.forget_gone_peer()) << "it is there";
  client.reset();
  EXPECT_TRUE(keeper_.forget_gone_peer());
  EXPECT_FALSE(keeper_.forget_gone_peer()) << "once";
  settle();
  EXPECT_TRUE(keeper_.is_at_rest());
  EXPECT_FALSE(is_closed(agents_[0]));
  Fd second = open();
  settle();
  EXPECT_TRUE(is_closed(agents_[0])) << "another takes its place";
  put(second, "a byte");
  settle();
  EXPECT_EQ(take(agents_[1]), "a byte");
}

TEST_F(RelayTest, ARestThatCrossesAByteOnItsWayIsNone) {
  Fd client = open();
  settle();
  note({1, 0});
  ASSERT_TRUE(guest_.move_bytes().ok());
  put(client, "late");
  settle();
  EXPECT_FALSE(keeper_.is_at_rest());
}

TEST_F(RelayTest, WhoAsksForStillFilesIsHandedOnAndIsNoRest) {
  Fd client = open();
  settle();
  auto pair = make_pair();
  int sent[] = {pair.theirs.get()};
  ASSERT_TRUE(linux::send_message(notes_.get(), {&agent::kStillNote, 1}, sent).ok());
  pair.theirs.reset();
  settle();
  EXPECT_FALSE(keeper_.is_at_rest());
  ASSERT_EQ(askers_.size(), 1u);
  put(askers_[0], "still\n");
  EXPECT_EQ(take(pair.ours), "still\n");
  note({1, 0});
  settle();
  EXPECT_TRUE(keeper_.is_at_rest()) << "notes are taken as before";
}

// The same guest with another keeper, as one that begins with its memory has.
class RebornTest : public RelayTest {
 protected:
  RebornTest() : RebornTest(make_pair()) {}
  explicit RebornTest(linux::SocketPair port) : RelayTest(std::move(port)) {
    rebirth_.nonce.fill(7);
  }
  Rebirth rebirth_ = {};
};

TEST_F(RebornTest, ItIsAnotherBeforeAnythingElseHappens) {
  Fd client = open();
  put(client, "12345");
  settle();
  EXPECT_EQ(take(agents_[0]), "12345");
  put(agents_[0], "of the one before");
  auto port = make_pair();
  guest_.set_port(std::move(port.theirs));
  Relay keeper(std::move(port.ours), rebirth_);
  auto pair = make_pair();
  keeper.open(std::move(pair.theirs));
  put(pair.ours, "first");
  EXPECT_TRUE(keeper.awaits_rebirth());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(guest_.move_bytes().ok());
    ASSERT_TRUE(keeper.move_bytes().ok());
  }
  EXPECT_FALSE(keeper.awaits_rebirth());
  EXPECT_EQ(nonce_, rebirth_.nonce);
  ASSERT_EQ(agents_.size(), 2u);
  EXPECT_TRUE(is_closed(agents_[0]));
  EXPECT_EQ(take(agents_[1]), "first");
  EXPECT_EQ(take(pair.ours), "") << "nothing of the one before";
  note({2, 5});
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(guest_.move_bytes().ok());
    ASSERT_TRUE(keeper.move_bytes().ok());
  }
  EXPECT_TRUE(keeper.is_at_rest()) << "both count from the rebirth on";
}

TEST_F(RebornTest, OneThatCannotBeIsNone) {
  settle();
  can_be_reborn_ = false;
  auto port = make_pair();
  guest_.set_port(std::move(port.theirs));
  Relay keeper(std::move(port.ours), rebirth_);
  ASSERT_TRUE(keeper.move_bytes().ok());
  EXPECT_FALSE(guest_.move_bytes().ok());
  EXPECT_TRUE(keeper.awaits_rebirth());
}

TEST_F(RelayTest, AGuestAsksToBeLaidDown) {
  Fd client = open();
  settle();
  EXPECT_FALSE(keeper_.lies_down());
  auto pair = make_pair();
  int sent[] = {pair.theirs.get()};
  ASSERT_TRUE(linux::send_message(notes_.get(), {&agent::kLayDownNote, 1}, sent).ok());
  settle();
  EXPECT_TRUE(keeper_.lies_down());
  EXPECT_TRUE(askers_.empty());
}

TEST_F(RelayTest, FilesAreKeptByTheKeeperAndForgottenWhenTheyAreTaken) {
  int kept = 0, forgotten = 0;
  Result<void> outcome;
  keeper_.offer_files({[&] {
                         ++kept;
                         return outcome;
                       },
                       [&] { ++forgotten; }});
  Fd client = open();
  settle();
  guest_.tell_keeper(RelayKind::kKeepFiles);
  settle();
  EXPECT_EQ(kept, 1);
  EXPECT_EQ(answers_, std::vector<int>{0});
  EXPECT_EQ(forgotten, 0);
  guest_.tell_keeper(RelayKind::kFilesTaken);
  settle();
  EXPECT_EQ(forgotten, 1);
  outcome = Error::from_errno("keep", ENOSPC);
  guest_.tell_keeper(RelayKind::kKeepFiles);
  settle();
  EXPECT_EQ(answers_, (std::vector<int>{0, ENOSPC}));
}

TEST_F(RelayTest, AGuestThatAsksForFilesWhereNoneAreKeptIsGivenUp) {
  Fd client = open();
  settle();
  guest_.tell_keeper(RelayKind::kKeepFiles);
  ASSERT_TRUE(guest_.move_bytes().ok());
  EXPECT_FALSE(keeper_.move_bytes().ok()) << "nobody keeps files here";
}

TEST_F(RelayTest, AGuestThatAsksForFilesAgainBeforeItTookThemIsGivenUp) {
  keeper_.offer_files({[] { return Result<void>(); }, [] {}});
  Fd client = open();
  settle();
  guest_.tell_keeper(RelayKind::kKeepFiles);
  guest_.tell_keeper(RelayKind::kKeepFiles);
  ASSERT_TRUE(guest_.move_bytes().ok());
  EXPECT_FALSE(keeper_.move_bytes().ok());
}

TEST(RelayFrame, AnythingElseThanAFrameIsRefused) {
  for (std::string bytes :
       {encode_relay(RelayKind{0}, 1), encode_relay(RelayKind{12}, 1),
        encode_relay(RelayKind::kRest, 1, "123456789"), encode_relay(RelayKind::kReady, 1, "x"),
        encode_relay(RelayKind::kClock, 1, "123456789"),
        encode_relay(RelayKind::kFilesKept, 1, "123456789"),
        encode_relay(RelayKind::kKeepFiles, 1, "x"),
        encode_relay(RelayKind::kData, 1, std::string(kMaxRelayBytes + 1, 'x')),
        encode_relay(RelayKind::kOpen, 1, "x"), encode_relay(RelayKind::kClose, 1, "x")}) {
    RelayFrame frame;
    EXPECT_FALSE(take_relay_frame(bytes, frame).ok());
  }
}

TEST(RelayFrame, IsTakenWhenItIsWhole) {
  std::string frame_bytes = encode_relay(RelayKind::kData, 7, "abc");
  for (size_t length = 0; length < frame_bytes.size(); ++length) {
    std::string part = frame_bytes.substr(0, length);
    RelayFrame frame;
    auto taken = take_relay_frame(part, frame);
    ASSERT_TRUE(taken.ok());
    EXPECT_FALSE(*taken);
  }
  RelayFrame frame;
  std::string two = frame_bytes + "rest";
  auto taken = take_relay_frame(two, frame);
  ASSERT_TRUE(taken.ok() && *taken);
  EXPECT_EQ(frame.data, "abc");
  EXPECT_EQ(frame.header.connection, 7u);
  EXPECT_EQ(two, "rest");
}

// Or asks to be laid down, without having been launched for that.
TEST(Relay, AGuestThatOpensConnectionsOrEndsItsMachineIsGivenUp) {
  for (RelayKind kind : {RelayKind::kOpen, RelayKind::kLayDown}) {
    auto port = make_pair();
    Relay keeper(std::move(port.ours));
    std::string bytes = encode_relay(RelayKind::kReady, 0) + encode_relay(kind, 0);
    ASSERT_EQ(write(port.theirs.get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
    EXPECT_FALSE(keeper.move_bytes().ok());
    EXPECT_FALSE(keeper.lies_down());
  }
}

}  // namespace
}  // namespace atl::microvm
