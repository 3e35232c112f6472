#include "sandbox/zygotes.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <gtest/gtest.h>

#include "agent/channel_protocol.h"
#include "async/spawn.h"
#include "base/file.h"

namespace atl::sandbox {
namespace {

constexpr uint32_t kChannel = 2;  // as an agent is asked to use
const std::string kImprint = "altprint and the rest";

Digest digest_of(unsigned char first) {
  std::array<unsigned char, Digest::kBytes> bytes = {first};
  return Digest::from_bytes(bytes);
}

class ZygotesTest : public testing::Test {
 protected:
  ZygotesTest() : link_(connected()) {}

  std::shared_ptr<isolate::AgentLink> connected() {
    isolate::AgentSocket ours(context_);
    boost::asio::local::connect_pair(ours, agent_);
    return std::make_shared<isolate::AgentLink>(std::move(ours));
  }
  // What the agent says is there before it is asked.
  void say(const std::string& frame) {
    ASSERT_EQ(write(agent_.native_handle(), frame.data(), frame.size()),
              static_cast<ssize_t>(frame.size()));
  }
  void say_imprint(std::string_view bytes) {
    say(agent::encode_channel_data(kChannel, bytes));
    say(agent::encode_channel_end(kChannel));
    say(agent::encode(kChannel, agent::ChannelClose{}));
  }
  Result<void> make() {
    std::optional<Result<void>> made;
    auto run = [&]() -> Task<void> { made = co_await zygotes_.make("python", image_, link_, 1); };
    // detached: owned by this test, and ends before it does
    spawn(context_.get_executor(), run());
    while (!made) context_.run_one();
    return std::move(*made);
  }

  boost::asio::io_context context_;
  FakeClock clock_;
  Basis image_{digest_of(0)};
  Basis other_image_{digest_of(1)};
  Basis with_toolbox_{digest_of(0), digest_of(2)};
  isolate::AgentSocket agent_{context_};
  std::shared_ptr<isolate::AgentLink> link_;
  Zygotes zygotes_{context_.get_executor(), clock_};
};

TEST_F(ZygotesTest, WhatTheAgentSentIsKeptSealed) {
  say_imprint(kImprint);
  ASSERT_TRUE(make().ok());
  EXPECT_EQ(zygotes_.find("python", other_image_), nullptr);
  Imprint imprint = zygotes_.find("python", image_);
  ASSERT_NE(imprint, nullptr);
  char bytes[100];
  EXPECT_EQ(pread(imprint->fd(), bytes, sizeof bytes, 0), static_cast<ssize_t>(kImprint.size()));
  EXPECT_EQ(std::string_view(bytes, kImprint.size()), kImprint);
  EXPECT_LT(pwrite(imprint->fd(), "x", 1, 0), 0);
  EXPECT_NE(ftruncate(imprint->fd(), 0), 0);
  EXPECT_EQ(zygotes_.counts().copies, 1u);
}

TEST_F(ZygotesTest, WordsInsteadOfAnImprintAreTheReason) {
  say_imprint("there are 2 threads");
  auto made = make();
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message(), "the interpreter cannot be copied: there are 2 threads");
  EXPECT_EQ(zygotes_.find("python", image_), nullptr);
}

TEST_F(ZygotesTest, AnAgentThatRefusesOrGoesIsAnError) {
  say(agent::encode(kChannel, agent::ChannelClose{ESRCH, "open imprint"}));
  EXPECT_EQ(make().error().system_errno(), ESRCH);
  agent_.close();
  EXPECT_FALSE(make().ok());
}

TEST_F(ZygotesTest, OneIsMadeAnewAfterAnHourOrWithAnotherImageOrToolbox) {
  EXPECT_TRUE(zygotes_.wants("python", image_));
  say_imprint(kImprint);
  ASSERT_TRUE(make().ok());
  EXPECT_FALSE(zygotes_.wants("python", image_));
  EXPECT_TRUE(zygotes_.wants("python", other_image_));
  EXPECT_TRUE(zygotes_.wants("python", with_toolbox_));
  EXPECT_EQ(zygotes_.find("python", with_toolbox_), nullptr);
  clock_.advance(std::chrono::minutes(61));
  EXPECT_TRUE(zygotes_.wants("python", image_));
  EXPECT_NE(zygotes_.find("python", image_), nullptr) << "until there is a new one";
}

TEST_F(ZygotesTest, OneIsMadeAnewAfterTenThousandCopies) {
  say_imprint(kImprint);
  ASSERT_TRUE(make().ok());
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_FALSE(zygotes_.wants("python", image_)) << i;
    zygotes_.find("python", image_);
  }
  EXPECT_TRUE(zygotes_.wants("python", image_));
}

TEST_F(ZygotesTest, AfterAFailureTheTemplateStartsColdForAWhile) {
  say_imprint(kImprint);
  ASSERT_TRUE(make().ok());
  zygotes_.fail("python", image_, Error(Code::kUnavailable, "a copy did not start"));
  EXPECT_EQ(zygotes_.find("python", image_), nullptr);
  EXPECT_EQ(zygotes_.size(), 0u);
  EXPECT_FALSE(zygotes_.wants("python", image_));
  clock_.advance(std::chrono::minutes(6));
  EXPECT_TRUE(zygotes_.wants("python", image_));
}

TEST(ZygoteStart, LibrariesStartNoThreads) {
  agent::Start waiting{
      .arguments = {"python3"}, .environment = {"OMP_NUM_THREADS=4", "PATH=/bin"}, .directory = {}};
  std::vector<std::string> wanted = {
      "OMP_NUM_THREADS=1", "PATH=/bin",
      "GLIBC_TUNABLES=glibc.malloc.arena_max=1:glibc.pthread.stack_cache_size=0", "ATOLL_ZYGOTE=1"};
  EXPECT_EQ(zygote_start(waiting).environment, wanted);
}

}  // namespace
}  // namespace atl::sandbox
