#include "sandbox/channel.h"

#include <gtest/gtest.h>

#include "base/eventually.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

using agent::FileOperation;

SteadyTime soon() { return std::chrono::steady_clock::now() + test_timeout(); }

agent::FileRequest request_for(FileOperation operation, std::string path) {
  agent::FileRequest request;
  request.operation = operation;
  request.path = std::move(path);
  return request;
}

void put_file(TestBed& bed, Sandbox& sandbox, const std::string& path, std::string bytes) {
  agent::FileEntry entry;
  entry.path = path;
  entry.size = bytes.size();
  bed.driver->files(sandbox.id()).entries()[path] = entry;
  bed.driver->files(sandbox.id()).contents()[path] = std::move(bytes);
}

std::string read_to_end(TestBed& bed, Channel& channel) {
  std::string all;
  while (true) {
    auto bytes = bed.run(channel.read(soon()));
    EXPECT_TRUE(bytes.ok());
    if (!bytes || bytes->empty()) return all;
    all += *bytes;
  }
}

TEST(Channel, MoreThanTheWindowFlowsWhenItIsRead) {
  TestBed bed;
  auto sandbox = bed.create();
  put_file(bed, *sandbox, "/large", std::string(3'000'000, 'x'));
  auto request = request_for(FileOperation::kRead, "/large");
  request.length = UINT64_MAX;
  auto channel = sandbox->channels().open(request);
  ASSERT_TRUE(channel.ok());
  EXPECT_EQ(sandbox->channels().size(), 1u);
  EXPECT_GT(read_to_end(bed, **channel).size(), 3'000'000u);
  channel->reset();
  bed.settle();
  EXPECT_EQ(sandbox->channels().size(), 0u);
  EXPECT_EQ(bed.driver->files(sandbox->id()).open_channels(), 0u);
}

TEST(Channel, AnUnreadOneHoldsNoMoreThanItsWindowAndNobodyElseUp) {
  TestBed bed;
  auto sandbox = bed.create();
  put_file(bed, *sandbox, "/large", std::string(3'000'000, 'x'));
  auto request = request_for(FileOperation::kRead, "/large");
  request.length = UINT64_MAX;
  auto channel = sandbox->channels().open(request);
  ASSERT_TRUE(channel.ok());
  bed.settle();
  EXPECT_EQ(bed.run_exec(*sandbox, {"echo", "still", "here"}).verdict, "ok");
  auto first = bed.run((*channel)->read(soon()));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->size(), agent::kChannelWindowBytes);
}

TEST(Channel, GivingItUpFreesItOnceTheAgentHasClosedItToo) {
  TestBed bed;
  auto sandbox = bed.create();
  auto channel = sandbox->channels().open(request_for(FileOperation::kStat, "/a.hang"));
  ASSERT_TRUE(channel.ok());
  bed.settle();
  EXPECT_EQ(bed.driver->files(sandbox->id()).open_channels(), 1u);
  channel->reset();
  EXPECT_EQ(sandbox->channels().size(), 0u);
  bed.settle();
  EXPECT_EQ(bed.driver->files(sandbox->id()).open_channels(), 0u);
}

TEST(Channel, ReadsTimeOutAndCanBeRepeated) {
  TestBed bed;
  auto sandbox = bed.create();
  auto channel = sandbox->channels().open(request_for(FileOperation::kStat, "/a.hang"));
  ASSERT_TRUE(channel.ok());
  for (int i = 0; i < 2; ++i) {
    auto bytes = bed.run((*channel)->read(std::chrono::steady_clock::now()));
    ASSERT_FALSE(bytes.ok());
    EXPECT_EQ(bytes.error().code(), Code::kTimeout);
  }
}

TEST(Channel, ABrokenStreamFailsItAndTheNextOneWorks) {
  TestBed bed;
  auto sandbox = bed.create();
  auto channel = sandbox->channels().open(request_for(FileOperation::kStat, "/a.hang"));
  ASSERT_TRUE(channel.ok());
  bed.settle();
  bed.driver->drop_stream(sandbox->id());
  auto bytes = bed.run((*channel)->read(soon()));
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.error().reason(), "agent_unavailable");
  auto write = bed.run((*channel)->write("late", soon()));
  ASSERT_FALSE(write.ok());
  EXPECT_EQ(write.error().reason(), "agent_unavailable");
  bed.settle();
  auto next = sandbox->channels().open(request_for(FileOperation::kPorts, "/"));
  ASSERT_TRUE(next.ok());
  EXPECT_FALSE(read_to_end(bed, **next).empty());
}

TEST(Channel, TheAgentsErrnoReachesTheReader) {
  TestBed bed;
  auto sandbox = bed.create();
  auto channel = sandbox->channels().open_port(8000);
  ASSERT_TRUE(channel.ok());
  auto bytes = bed.run((*channel)->read(soon()));
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.error().system_errno(), ECONNREFUSED);
}

TEST(Channels, AreLimitedInNumber) {
  TestBed bed;
  auto sandbox = bed.create();
  std::vector<std::unique_ptr<Channel>> held;
  for (size_t i = 0; i < agent::kMaxChannels; ++i) {
    auto channel = sandbox->channels().open(request_for(FileOperation::kStat, "/a.hang"));
    ASSERT_TRUE(channel.ok());
    held.push_back(std::move(*channel));
  }
  auto refused = sandbox->channels().open(request_for(FileOperation::kStat, "/a.hang"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason(), "too_many_operations");
  held.pop_back();
  bed.settle();
  EXPECT_TRUE(sandbox->channels().open(request_for(FileOperation::kStat, "/a.hang")).ok());
}

TEST(Channels, AnOpenOneKeepsTheSandboxFromBeingIdle) {
  TestBed bed;
  CreateSandbox request = bed.create_request();
  request.idle_ttl_ms = 10'000;
  auto created = bed.run(bed.sandboxes().create(store::kLocalTenant, request));
  ASSERT_TRUE(created.ok());
  auto sandbox = created->sandbox;
  auto channel = sandbox->channels().open(request_for(FileOperation::kStat, "/a.hang"));
  ASSERT_TRUE(channel.ok());
  bed.clock.advance(std::chrono::seconds(60));
  sweep(bed);
  EXPECT_EQ(bed.sandboxes().all().size(), 1u);
  channel->reset();
  bed.clock.advance(std::chrono::seconds(9));
  sweep(bed);
  EXPECT_EQ(bed.sandboxes().all().size(), 1u);
  bed.clock.advance(std::chrono::seconds(2));
  sweep(bed);
  EXPECT_EQ(bed.sandboxes().all().size(), 0u);
}

// What no honest agent sends ends the stream; the sandbox goes on with the next one.
class Breach : public testing::TestWithParam<std::string> {};

TEST_P(Breach, EndsTheStream) {
  TestBed bed;
  auto sandbox = bed.create();
  auto channel = sandbox->channels().open(request_for(FileOperation::kStat, "/a.hang"));
  ASSERT_TRUE(channel.ok());
  bed.settle();
  // In pieces: this thread is also the one that takes them.
  for (size_t at = 0; at < GetParam().size(); at += 16384) {
    bed.driver->inject(sandbox->id(), GetParam().substr(at, 16384));
    bed.step();
  }
  std::string failure;
  while (failure.empty()) {
    auto bytes = bed.run((*channel)->read(soon()));
    if (!bytes) failure = bytes.error().reason();
  }
  EXPECT_EQ(failure, "agent_unavailable");
  bed.settle();
  EXPECT_EQ(bed.run_exec(*sandbox, {"echo", "alive"}).verdict, "ok");
}

std::string beyond_the_credit() {
  std::string frames;
  for (size_t i = 0; i <= agent::kChannelWindowBytes / agent::kMaxChannelDataBytes; ++i)
    frames += agent::encode_channel_data(1, std::string(agent::kMaxChannelDataBytes, 'x'));
  return frames;
}

INSTANTIATE_TEST_SUITE_P(
    OfTheProtocol, Breach,
    testing::Values(beyond_the_credit(), agent::encode_channel_data(77, "x"),
                    agent::encode_channel_end(1) + agent::encode_channel_data(1, "x"),
                    agent::encode_channel_end(1) + agent::encode_channel_end(1),
                    agent::encode_channel_credit(1, 5), agent::encode(77, agent::ChannelClose{})));

}  // namespace
}  // namespace atl::sandbox
