#include "sandbox/warm_agent.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <gtest/gtest.h>

#include "agent/channel_protocol.h"
#include "agent/still_files.h"
#include "async/spawn.h"
#include "sandbox/rehearsal.h"

namespace atl::sandbox {
namespace {

constexpr uint32_t kWaiting = 1;
constexpr uint32_t kChannel = 1;  // as an agent is asked to use
constexpr uint32_t kPid = 77;

// The agent of a machine that begins with the memory of another, in which a program waited.
class RebornAgents : public testing::Test {
 protected:
  RebornAgents() {
    isolate::AgentSocket ours(context_);
    boost::asio::local::connect_pair(ours, agent_);
    link_ = std::make_shared<isolate::AgentLink>(std::move(ours));
    nonce_.fill(7);
  }
  // What the agent says is there before it is asked.
  void say(const std::string& frame) {
    ASSERT_EQ(write(agent_.native_handle(), frame.data(), frame.size()),
              static_cast<ssize_t>(frame.size()));
  }
  void say_hello(std::vector<agent::ExecOffsets> execs) {
    say(agent::encode(agent::Hello{agent::kProtocolVersion, nonce_, std::move(execs), "x"}));
  }
  void say_ready() {
    say(agent::encode_channel_data(kChannel, "ready\n"));
    say(agent::encode(kChannel, agent::ChannelClose{}));
  }
  // The execs of the welcome, which is the first that the agent hears after its keeper's word.
  std::vector<uint32_t> welcomed() {
    context_.restart();
    context_.poll();
    char bytes[4096];
    ssize_t count = recv(agent_.native_handle(), bytes, sizeof bytes, MSG_DONTWAIT);
    agent::FrameReader reader(agent::FrameReader::Side::kAgent);
    std::vector<uint32_t> execs;
    EXPECT_GT(count, 1);
    EXPECT_EQ(bytes[0], agent::kBeginNote);
    if (count <= 1) return execs;
    size_t heard = static_cast<size_t>(count) - 1;
    std::memcpy(reader.prepare(sizeof bytes), bytes + 1, heard);
    reader.commit(heard);
    auto frame = reader.next();
    if (!frame.ok() || !*frame) return execs;
    auto welcome = agent::decode_welcome((*frame)->payload);
    if (!welcome.ok()) return execs;
    for (const agent::ExecOffsets& one : welcome->execs) execs.push_back(one.exec);
    return execs;
  }
  Result<WarmAgent> greet(bool waited, CopyOf::Rehearsal rehearsal = CopyOf::Rehearsal::kNone) {
    CopyOf copy{nullptr, rehearsal};
    WaitingProgram program{.number = kWaiting, .pid = 1, .open_files = 5, .environment = {"A=1"}};
    if (waited) copy.waited = program;
    std::optional<Result<WarmAgent>> greeted;
    auto run = [&]() -> Task<void> {
      std::optional<agent::Start> none;
      greeted = co_await warm_agent(link_, nonce_, none, copy);
    };
    // detached: owned by this test, and ends before it does
    spawn(context_.get_executor(), run());
    context_.restart();  // it stops when nothing is left to do
    while (!greeted) context_.run_one();
    return std::move(*greeted);
  }

  boost::asio::io_context context_;
  isolate::AgentSocket agent_{context_};
  std::shared_ptr<isolate::AgentLink> link_;
  isolate::Nonce nonce_ = {};
};

TEST_F(RebornAgents, WhatWaitedIsTakenUpWhenItSaysThatItIsReady) {
  say_hello({{kWaiting, 0, 0, 0}});
  say(agent::encode_started(kWaiting, kPid));
  say_ready();
  auto greeted = greet(true);
  ASSERT_TRUE(greeted.ok()) << greeted.error().message();
  ASSERT_TRUE(greeted->waiting.has_value());
  EXPECT_EQ(greeted->waiting->pid, kPid);
  EXPECT_TRUE(greeted->waiting->copied);
  EXPECT_EQ(greeted->waiting->open_files, 5u);
  EXPECT_EQ(greeted->waiting->environment, std::vector<std::string>{"A=1"});
}

TEST_F(RebornAgents, OneThatRunsAnythingElseIsRefused) {
  std::vector<std::vector<agent::ExecOffsets>> wrong = {
      {},
      {{2, 0, 0, 0}},
      {{kWaiting, 1, 0, 0}},
      {{kWaiting, 0, 1, 0}},
      {{kWaiting, 0, 0, 1}},
      {{kWaiting, 0, 0, 0}, {2, 0, 0, 0}},
      {{kUnderstudy, 0, 0, 0}},
      {{kWaiting, 0, 0, 0}, {kUnderstudy, 1, 0, 0}},
      {{kWaiting, 0, 0, 0}, {kUnderstudy, 0, 0, 0}, {kUnderstudy + 1, 0, 0, 0}}};
  for (const auto& execs : wrong) {
    say_hello(execs);
    EXPECT_EQ(greet(true).error().code(), Code::kCorrupt);
  }
}

TEST_F(RebornAgents, AnUnderstudyIsLeftOutOfTheWelcomeWhereNothingIsRehearsed) {
  say_hello({{kWaiting, 0, 0, 0}, {kUnderstudy, 0, 0, 0}});
  say(agent::encode_started(kWaiting, kPid));
  say_ready();
  ASSERT_TRUE(greet(true).ok());
  EXPECT_EQ(welcomed(), std::vector<uint32_t>{kWaiting});
}

TEST_F(RebornAgents, AnUnderstudyRunsAProgramToItsEnd) {
  say_hello({{kWaiting, 0, 0, 0}, {kUnderstudy, 0, 0, 0}});
  say(agent::encode_started(kUnderstudy, kPid + 1));
  say(agent::encode_started(kWaiting, kPid));
  say_ready();
  say_ready();  // the understudy, when the machine has rested
  say(agent::encode(kUnderstudy, agent::Output{agent::Stream::kStdout, 0, "1\n"}));
  say(agent::encode(kUnderstudy, agent::Exit{}));
  say_ready();
  auto greeted = greet(true, CopyOf::Rehearsal::kOften);
  ASSERT_TRUE(greeted.ok()) << greeted.error().message();
  EXPECT_EQ(greeted->waiting->pid, kPid);
  EXPECT_EQ(welcomed(), (std::vector<uint32_t>{kWaiting, kUnderstudy}));
}

TEST_F(RebornAgents, NothingRunsInOneThatWasStarted) {
  say_hello({{kWaiting, 0, 0, 0}});
  EXPECT_EQ(greet(false).error().code(), Code::kCorrupt);
  say_hello({});
  EXPECT_TRUE(greet(false).ok());
}

TEST_F(RebornAgents, OneThatHasAnotherNonceIsRefused) {
  say(agent::encode(
      agent::Hello{agent::kProtocolVersion, isolate::Nonce{}, {{kWaiting, 0, 0, 0}}, "x"}));
  EXPECT_EQ(greet(true).error().code(), Code::kCorrupt);
}

TEST_F(RebornAgents, WhatEndsInsteadOfGettingReadyIsNone) {
  say_hello({{kWaiting, 0, 0, 0}});
  say(agent::encode_started(kWaiting, kPid));
  say(agent::encode(kWaiting, agent::Exit{}));
  EXPECT_EQ(greet(true).error().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace atl::sandbox
