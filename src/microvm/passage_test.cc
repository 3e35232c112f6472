#include "microvm/passage.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "linux/unix_socket.h"

namespace atl::microvm {
namespace {

constexpr Destination kServer = {
    .transport = Transport::kStream, .reserved = 0, .port = 80, .address = {198, 18, 1, 0}};
constexpr Destination kResolver = {.transport = Transport::kQuestion,
                                   .reserved = 0,
                                   .port = kQuestionPort,
                                   .address = {198, 18, 0, 1}};

linux::SocketPair make_pair(int type = SOCK_STREAM) {
  auto pair = linux::make_socket_pair(type | SOCK_NONBLOCK);
  EXPECT_TRUE(pair.ok());
  return std::move(*pair);
}

void put(const Fd& fd, std::string_view text) {
  ASSERT_EQ(send(fd.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
}

std::string take(const Fd& fd) {
  std::string all;
  char bytes[65536];
  for (ssize_t count; (count = recv(fd.get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
    all.append(bytes, static_cast<size_t>(count));
  return all;
}

bool is_closed(const Fd& fd) {
  char byte;
  return recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0;
}

Result<void> step(Passage& passage) {
  std::vector<pollfd> polls;
  passage.add_watches(polls);
  EXPECT_GE(poll(polls.data(), polls.size(), 0), 0);
  return passage.move_bytes(polls);
}

// A guest and a keeper joined by a stream. Programs are the other ends of what the guest accepts,
// servers those of what the keeper dials.
class PassageTest : public ::testing::Test {
 protected:
  PassageTest() : PassageTest(make_pair()) {}
  explicit PassageTest(linux::SocketPair port)
      : guest_(std::move(port.ours)),
        keeper_(std::move(port.theirs), [this](const Destination& to) { return dial(to); }) {}

  Result<Fd> dial(const Destination& to) {
    dialled_.push_back(to);
    if (refuses_) return Error::from_errno("connect", ECONNREFUSED);
    auto pair = make_pair(to.transport == Transport::kStream ? SOCK_STREAM : SOCK_DGRAM);
    servers_.push_back(std::move(pair.ours));
    return std::move(pair.theirs);
  }
  Fd open() {
    auto pair = make_pair();
    guest_.open(std::move(pair.theirs), kServer);
    return std::move(pair.ours);
  }
  void settle() {
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(step(guest_).ok());
      ASSERT_TRUE(step(keeper_).ok());
    }
  }

  std::vector<Destination> dialled_;
  std::vector<Fd> servers_;
  bool refuses_ = false;
  Passage guest_, keeper_;
};

TEST_F(PassageTest, BytesGoBothWaysToWhereTheProgramWanted) {
  Fd program = open();
  put(program, "question");
  settle();
  ASSERT_EQ(servers_.size(), 1u);
  EXPECT_EQ(dialled_[0].port, 80);
  EXPECT_EQ(dialled_[0].address, kServer.address);
  EXPECT_EQ(take(servers_[0]), "question");
  put(servers_[0], "answer");
  settle();
  EXPECT_EQ(take(program), "answer");
}

TEST_F(PassageTest, EachSideEndsByItself) {
  Fd program = open();
  put(program, "all");
  shutdown(program.get(), SHUT_WR);
  settle();
  EXPECT_EQ(take(servers_[0]), "all");
  EXPECT_TRUE(is_closed(servers_[0]));
  put(servers_[0], "late");
  settle();
  EXPECT_EQ(take(program), "late");
  EXPECT_FALSE(is_closed(program));
  servers_[0].reset();
  settle();
  EXPECT_TRUE(is_closed(program));
  EXPECT_FALSE(guest_.is_full());
}

TEST_F(PassageTest, WhatIsRefusedIsClosedInside) {
  refuses_ = true;
  Fd program = open();
  settle();
  EXPECT_TRUE(is_closed(program));
}

TEST_F(PassageTest, AConnectionThatStandsStillHoldsUpNoOtherAndKeepsAWindowAtMost) {
  Fd still = open();
  settle();
  std::string piece(64 * 1024, 'x');
  size_t sent = 0;
  for (int i = 0; i < 200; ++i) {
    ssize_t count = send(still.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (count > 0) sent += static_cast<size_t>(count);
    ASSERT_TRUE(step(guest_).ok());
    ASSERT_TRUE(step(keeper_).ok());
  }
  Fd moves = open();
  put(moves, "passes");
  settle();
  ASSERT_EQ(servers_.size(), 2u);
  EXPECT_EQ(take(servers_[1]), "passes");
  // Nothing is lost when it goes on.
  size_t arrived = 0;
  for (int i = 0; i < 1000 && arrived < sent; ++i) {
    arrived += take(servers_[0]).size();
    ASSERT_TRUE(step(guest_).ok());
    ASSERT_TRUE(step(keeper_).ok());
  }
  EXPECT_EQ(arrived, sent);
}

TEST_F(PassageTest, AQuestionHasOneAnswer) {
  std::vector<std::string> answers;
  auto answered = [&answers](std::string_view text) { answers.emplace_back(text); };
  guest_.ask(kResolver, "who", answered);
  settle();
  ASSERT_EQ(servers_.size(), 1u);
  EXPECT_EQ(take(servers_[0]), "who");
  put(servers_[0], "me");
  put(servers_[0], "and me");
  settle();
  EXPECT_EQ(answers, std::vector<std::string>{"me"});
}

TEST_F(PassageTest, QuestionsThatNobodyAnswersTakeNoRoomFromConnections) {
  for (int i = 0; i < 1000; ++i) {
    guest_.ask(kResolver, "who", [](std::string_view) {});
    if (i % 20 == 0) settle();
  }
  settle();
  EXPECT_FALSE(guest_.is_full());
  Fd program = open();
  put(program, "passes");
  settle();
  EXPECT_EQ(take(servers_.back()), "passes");
}

// A keeper, and a guest that says what it likes.
class HostilePassageTest : public ::testing::Test {
 protected:
  HostilePassageTest() : HostilePassageTest(make_pair()) {}
  explicit HostilePassageTest(linux::SocketPair port)
      : guest_(std::move(port.ours)), keeper_(std::move(port.theirs), [this](const Destination&) {
          auto pair = make_pair();
          servers_.push_back(std::move(pair.ours));
          return Result<Fd>(std::move(pair.theirs));
        }) {}

  bool says(const std::string& frames) {
    put(guest_, frames);
    for (int i = 0; i < 3; ++i)
      if (!step(keeper_)) return false;
    return true;
  }

  Fd guest_;
  std::vector<Fd> servers_;
  Passage keeper_;
};

TEST_F(HostilePassageTest, MoreThanAWindowEndsThePassage) {
  ASSERT_TRUE(says(encode_open(1, kServer)));
  // The server takes nothing: of what it could be sent its socket holds some, and one window is
  // kept here.
  bool goes_on = true;
  for (int i = 0; i < 100 && goes_on; ++i)
    goes_on = says(encode_passage(PassageKind::kData, 1, std::string(kMaxPassageBytes, 'x')));
  EXPECT_FALSE(goes_on);
}

TEST_F(HostilePassageTest, ANumberIsUsedOnce) {
  ASSERT_TRUE(says(encode_open(5, kServer)));
  EXPECT_FALSE(says(encode_open(5, kServer)));
}

TEST_F(HostilePassageTest, BytesOfAConnectionThatIsGoneAreDropped) {
  ASSERT_TRUE(says(encode_open(5, kServer) + encode_passage(PassageKind::kReset, 5)));
  EXPECT_TRUE(says(encode_passage(PassageKind::kData, 5, "late")));
  EXPECT_TRUE(says(encode_passage(PassageKind::kData, 4, "late")));
  EXPECT_FALSE(says(encode_passage(PassageKind::kData, 6, "early")));
}

TEST_F(HostilePassageTest, BytesAfterTheEndEndIt) {
  ASSERT_TRUE(says(encode_open(1, kServer) + encode_passage(PassageKind::kEnd, 1)));
  EXPECT_FALSE(says(encode_passage(PassageKind::kData, 1, "more")));
}

TEST_F(HostilePassageTest, MoreCreditThanAWindowEndsIt) {
  ASSERT_TRUE(says(encode_open(1, kServer)));
  EXPECT_FALSE(says(encode_credit(1, 1)));
}

TEST_F(HostilePassageTest, TooManyConnectionsAreRefusedOneByOne) {
  std::string frames;
  for (uint32_t i = 1; i <= kMaxCarried + 10; ++i) frames += encode_open(i, kServer);
  ASSERT_TRUE(says(frames));
  EXPECT_EQ(servers_.size(), kMaxCarried);
  std::string answer = take(guest_);
  std::string_view rest = answer;
  PassageFrame frame;
  size_t refused = 0;
  for (auto whole = take_passage_frame(rest, frame); whole.ok() && *whole;
       whole = take_passage_frame(rest, frame))
    if (frame.kind == PassageKind::kReset) ++refused;
  EXPECT_EQ(refused, 10u);
}

TEST_F(HostilePassageTest, AGuestThatReadsNothingIsNotReadFromForEver) {
  bool blocked = false;
  uint32_t number = 0;
  for (int i = 0; i < 200'000 && !blocked; ++i) {
    // Each is refused, and the refusals are not read.
    std::string frame = encode_open(++number, kServer);
    blocked = send(guest_.get(), frame.data(), frame.size(), MSG_DONTWAIT) < 0;
    if (blocked) {
      for (int turn = 0; turn < 50; ++turn) ASSERT_TRUE(step(keeper_).ok());
      blocked = send(guest_.get(), frame.data(), frame.size(), MSG_DONTWAIT) < 0;
    }
    if (i % 100 == 0) {
      ASSERT_TRUE(step(keeper_).ok());
    }
  }
  EXPECT_TRUE(blocked);
}

TEST(PassageFrame, WhatIsOutOfItsBoundsIsRefused) {
  auto refuses = [](const std::string& text) {
    std::string_view bytes = text;
    PassageFrame frame;
    return !take_passage_frame(bytes, frame).ok();
  };
  EXPECT_TRUE(refuses(encode_passage(static_cast<PassageKind>(0), 1)));
  EXPECT_TRUE(refuses(encode_passage(static_cast<PassageKind>(6), 1)));
  EXPECT_TRUE(refuses(encode_passage(PassageKind::kData, 1)));
  EXPECT_TRUE(
      refuses(encode_passage(PassageKind::kData, 1, std::string(kMaxPassageBytes + 1, 'x'))));
  EXPECT_TRUE(refuses(encode_passage(PassageKind::kOpen, 1, "short")));
  EXPECT_TRUE(refuses(encode_passage(PassageKind::kEnd, 1, "more")));
  EXPECT_TRUE(refuses(encode_credit(1, 0)));
  EXPECT_TRUE(refuses(encode_credit(1, kPassageWindow + 1)));
  Destination other = kServer;
  other.transport = static_cast<Transport>(1);
  EXPECT_TRUE(refuses(encode_open(1, other)));
  other = kResolver;
  other.port = 123;
  EXPECT_TRUE(refuses(encode_open(1, other)));
  other = kServer;
  other.port = 0;
  EXPECT_TRUE(refuses(encode_open(1, other)));
  EXPECT_FALSE(refuses(encode_open(1, kServer)));
  EXPECT_FALSE(refuses(encode_open(1, kResolver)));
}

}  // namespace
}  // namespace atl::microvm
