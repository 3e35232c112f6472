// For tests of channels: opens them on a TestDaemon's connection and keeps what arrives.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "agent/channel_protocol.h"
#include "agent/file_protocol.h"
#include "agent/fixture_test.h"

namespace atl::agent {

// One channel as the daemon sees it.
struct TestChannel {
  enum class Credit : uint8_t { kAtOnce, kNone } credit = Credit::kAtOnce;
  std::string bytes;
  uint64_t may_receive = kChannelWindowBytes;
  uint64_t may_send = kChannelWindowBytes;
  uint64_t sent = 0;
  bool ended = false;
  std::optional<ChannelClose> close;
};

// What a file operation answered.
struct FileAnswer {
  std::vector<FileEntry> entries;
  std::vector<FileMatch> matches;
  std::vector<FileChange> changes;
  std::vector<ListeningPort> ports;
  std::string bytes;
  bool ready = false;
  std::optional<uint8_t> done;
  std::optional<FileFailure> failure;
  std::optional<ChannelClose> close;
  // 0: well done; -1: neither done nor failed.
  int error() const { return failure ? failure->system_errno : done ? 0 : -1; }
  std::vector<std::string> paths() const;
};
FileAnswer read_answer(const TestChannel& channel);

class TestChannels {
 public:
  explicit TestChannels(TestDaemon& daemon);

  uint32_t open(const FileRequest& request);
  uint32_t open_port(uint16_t port);
  uint32_t open_control(const OpenControl& open);
  uint32_t open_imprint(uint32_t exec);
  void send(uint32_t channel, std::string_view bytes);
  void end(uint32_t channel);
  void give_up(uint32_t channel);
  void grant(uint32_t channel, uint64_t total_bytes);
  TestChannel& at(uint32_t channel) { return channels_[channel]; }
  bool wait_closed(uint32_t channel);

  // From the request to the close; `upload`: the records towards the worker.
  FileAnswer run(const FileRequest& request, std::string_view upload = {});
  FileAnswer write(const std::string& path, std::string_view bytes, FileRequest request = {});

 private:
  void take(const Frame& frame);

  TestDaemon& daemon_;
  std::map<uint32_t, TestChannel> channels_;
  uint32_t next_ = 1;
};

// A sandbox with a directory that all its users can write to.
class FileTest : public testing::TestWithParam<Starter> {
 protected:
  explicit FileTest(TestLimits limits = {})
      : sandbox_(GetParam(), limits), has_own_root_(limits.root_bytes > 0) {}
  void SetUp() override;
  // Also checks that nothing that ran for a channel is left.
  void TearDown() override;

  std::string at(const std::string& name) const { return directory_ + "/" + name; }
  // The same, for the test itself.
  std::string outside(const std::string& name) const { return prefix_ + at(name); }
  void put(const std::string& name, std::string_view bytes, unsigned mode = 0644);
  std::string get(const std::string& name) const;
  // Names in the directory, with what is beneath.
  std::vector<std::string> tree() const;
  FileAnswer ask(FileOperation operation, const std::string& name, uint32_t flags = 0);
  // Runs a shell script inside.
  Record run(const std::string& script, const std::string& user = "user");
  bool leaves_are_gone();

  TestSandbox sandbox_;
  TestDaemon daemon_{sandbox_};
  TestChannels channels_{daemon_};
  std::string directory_;
  std::string prefix_;  // where the sandbox has a root of its own
  bool has_own_root_ = false;
  uint32_t next_exec_ = 1;
};
#define ATOLL_FILE_TESTS(suite)                                              \
  INSTANTIATE_TEST_SUITE_P(                                                  \
      StartedBy, suite, testing::Values(Starter::kAgent, Starter::kSpawner), \
      [](const auto& starter) { return starter.param == Starter::kAgent ? "Agent" : "Spawner"; })

FileRequest file_request(FileOperation operation, std::string path, uint32_t flags = 0);

}  // namespace atl::agent
