#include "agent/output_stream.h"

#include <gtest/gtest.h>

namespace atl::agent {
namespace {

constexpr uint64_t kNoLimit = ~uint64_t{0};

// Sends everything there is, in frames as the agent would.
std::string send_all(OutputStream& stream) {
  std::string sent;
  while (true) {
    std::string_view next = stream.unsent();
    if (next.empty()) return sent;
    EXPECT_LE(next.size(), kMaxOutputBytes);
    sent += next;
    stream.mark_sent(next.size());
  }
}

TEST(OutputStream, SendsWhatWasAppendedOnce) {
  OutputStream stream(kNoLimit);
  stream.append("hello ");
  EXPECT_EQ(send_all(stream), "hello ");
  stream.append("world");
  EXPECT_EQ(send_all(stream), "world");
  EXPECT_EQ(stream.produced(), 11u);
}

TEST(OutputStream, WindowIsFullAtItsSizeAndOpensByAcknowledgement) {
  OutputStream stream(kNoLimit);
  stream.append(std::string(kWindowBytes, 'a'));
  EXPECT_EQ(stream.room(), 0u);
  send_all(stream);
  EXPECT_EQ(stream.room(), 0u);
  ASSERT_TRUE(stream.acknowledge(1000));
  EXPECT_EQ(stream.room(), 1000u);
}

TEST(OutputStream, AcknowledgementBackwardsOrOfUnsentIsRefused) {
  OutputStream stream(kNoLimit);
  stream.append("0123456789");
  EXPECT_FALSE(stream.acknowledge(1));
  stream.mark_sent(5);
  EXPECT_FALSE(stream.acknowledge(6));
  EXPECT_TRUE(stream.acknowledge(5));
  EXPECT_FALSE(stream.acknowledge(4));
  EXPECT_TRUE(stream.acknowledge(5));
}

TEST(OutputStream, ResumesFromAnyByteThatIsNotAcknowledged) {
  OutputStream stream(kNoLimit);
  stream.append("0123456789");
  send_all(stream);
  ASSERT_TRUE(stream.acknowledge(3));
  EXPECT_FALSE(stream.resume_from(2));
  EXPECT_FALSE(stream.resume_from(11));
  ASSERT_TRUE(stream.resume_from(7));
  EXPECT_EQ(send_all(stream), "789");
  EXPECT_FALSE(stream.resume_from(6)) << "what the daemon holds counts as acknowledged";
}

TEST(OutputStream, BeyondTheLimitIsCountedAndDropped) {
  OutputStream stream(4);
  EXPECT_FALSE(stream.limit_reached());
  stream.append("abcdef");
  EXPECT_TRUE(stream.limit_reached());
  stream.count_cut(10);
  EXPECT_EQ(send_all(stream), "abcd");
  EXPECT_EQ(stream.cut(), 12u);
  EXPECT_EQ(stream.produced(), 4u);
}

TEST(OutputStream, LimitOfZeroKeepsNothing) {
  OutputStream stream(0);
  EXPECT_TRUE(stream.limit_reached());
  stream.append("abc");
  EXPECT_TRUE(stream.unsent().empty());
  EXPECT_EQ(stream.cut(), 3u);
}

TEST(OutputStream, LongStreamInOddPiecesComesOutUnchanged) {
  OutputStream stream(kNoLimit);
  std::string all, got;
  uint32_t state = 1;
  while (all.size() < 5'000'000) {
    std::string piece;
    size_t most = std::min<size_t>(stream.room(), 1 + state % 70'000);
    while (piece.size() < most) {
      state = state * 1664525 + 1013904223;
      piece += static_cast<char>(state >> 24);
    }
    stream.append(piece);
    all += piece;
    got += send_all(stream);
    ASSERT_TRUE(stream.acknowledge(
        got.size() - std::min<size_t>(got.size() - stream.acknowledged(), state % 200'000)));
  }
  EXPECT_EQ(got, all);
}

}  // namespace
}  // namespace atl::agent
