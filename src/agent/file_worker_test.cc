// File operations of the real agent on the real kernel, by workers that the agent or the spawner
// starts.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "agent/channel_fixture_test.h"
#include "base/file.h"

namespace atl::agent {
namespace {

namespace fs = std::filesystem;

class FileWorker : public testing::TestWithParam<Starter> {
 protected:
  void SetUp() override {
    if (!sandbox_.problem().empty()) GTEST_SKIP() << sandbox_.problem();
    daemon_.connect();
    char path[] = "/tmp/atoll-files-test-XXXXXX";
    directory_ = mkdtemp(path);
    chmod(path, 0777);
  }
  void TearDown() override {
    if (directory_.empty()) return;
    // Nothing that ran for a channel is left.
    EXPECT_TRUE(daemon_.run_until([&] { return sandbox_.leaves().empty(); }, 5000));
    fs::remove_all(directory_);
  }
  std::string at(const std::string& name) const { return directory_ + "/" + name; }
  void put(const std::string& name, const std::string& bytes) const {
    std::ofstream(at(name)) << bytes;
  }
  FileAnswer ask(FileOperation operation, const std::string& name, uint32_t flags = 0) {
    return channels_.run(file_request(operation, name.empty() ? directory_ : at(name), flags));
  }

  TestSandbox sandbox_{GetParam()};
  TestDaemon daemon_{sandbox_};
  TestChannels channels_{daemon_};
  std::string directory_;
};

INSTANTIATE_TEST_SUITE_P(StartedBy, FileWorker, testing::Values(Starter::kAgent, Starter::kSpawner),
                         [](const auto& starter) {
                           return starter.param == Starter::kAgent ? "Agent" : "Spawner";
                         });

TEST_P(FileWorker, StatTellsWhatIsThere) {
  put("a", "hello");
  chmod(at("a").c_str(), 0640);
  FileAnswer answer = ask(FileOperation::kStat, "a");
  ASSERT_EQ(answer.error(), 0) << answer.failure->operation << answer.failure->system_errno;
  ASSERT_EQ(answer.entries.size(), 1u);
  EXPECT_EQ(answer.entries[0].path, at("a"));
  EXPECT_EQ(answer.entries[0].size, 5u);
  EXPECT_EQ(answer.entries[0].mode, 0640u);
  EXPECT_EQ(answer.close->system_errno, 0);
  EXPECT_EQ(ask(FileOperation::kStat, "b").error(), ENOENT);
}

TEST_P(FileWorker, ReadGivesTheRange) {
  std::string bytes(300'000, 'x');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  put("a", bytes);
  chmod(at("a").c_str(), 0644);
  FileRequest request = file_request(FileOperation::kRead, at("a"));
  request.length = UINT64_MAX;
  EXPECT_TRUE(channels_.run(request).bytes == bytes);
  request.offset = 100'000;
  request.length = 1000;
  FileAnswer part = channels_.run(request);
  EXPECT_EQ(part.error(), 0);
  EXPECT_TRUE(part.bytes == bytes.substr(100'000, 1000));
}

TEST_P(FileWorker, ListIsInTheOrderOfPaths) {
  fs::create_directories(at("a/x"));
  put("a-b", "");
  put("a/x/1", "");
  FileRequest request = file_request(FileOperation::kList, directory_);
  request.depth = 0;
  std::vector<std::string> all = {at("a"), at("a-b"), at("a/x"), at("a/x/1")};
  EXPECT_EQ(channels_.run(request).paths(), all);
}

}  // namespace
}  // namespace atl::agent
