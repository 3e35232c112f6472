// Costs of file operations in the real agent. As root.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "agent/channel_fixture_test.h"
#include "base/file.h"

namespace atl::agent {
namespace {

class FileCost : public FileTest {
 protected:
  // The median time of an operation, to its close.
  template <typename Operation>
  double median_ms(int rounds, Operation operation) {
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) {
      auto begin = std::chrono::steady_clock::now();
      operation();
      std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
      times.push_back(took.count());
    }
    std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
    return times[static_cast<size_t>(rounds / 2)];
  }
};
ATOLL_FILE_TESTS(FileCost);

double cpu_ms_of(pid_t pid) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/schedstat");
  return text.ok() ? static_cast<double>(std::stoull(*text)) / 1e6 : 0;
}

TEST_P(FileCost, OfEachOperation) {
  put("small", "x");
  put("one", std::string(1 << 20, 'x'));
  put("many", std::string(64 << 20, 'x'));
  FileRequest read = file_request(FileOperation::kRead, at("one"));
  read.length = UINT64_MAX;
  auto stat = [&] { EXPECT_EQ(ask(FileOperation::kStat, "small").error(), 0); };
  auto first_record = [&] {
    uint32_t channel = channels_.open(file_request(FileOperation::kStat, at("small")));
    daemon_.run_until([&] { return !channels_.at(channel).bytes.empty(); });
  };
  auto take = [&](const std::string& name) {
    read.path = at(name);
    uint32_t channel = channels_.open(read);
    EXPECT_TRUE(channels_.wait_closed(channel));
    EXPECT_GT(channels_.at(channel).bytes.size(), 1u << 20);
    channels_.at(channel) = TestChannel();
  };
  std::string bytes(64 << 20, 'y');
  FileRequest replace;
  replace.flags = bit(FileFlag::kReplace);
  auto write = [&] { EXPECT_EQ(channels_.write(at("new"), bytes, replace).error(), 0); };
  std::printf("stat, first record  %.2f ms\n", median_ms(200, first_record));
  std::printf("stat, closed        %.2f ms\n", median_ms(200, stat));
  std::printf("read 1 MiB          %.2f ms\n", median_ms(50, [&] { take("one"); }));
  double agent_ms = cpu_ms_of(sandbox_.agent_pid());
  std::printf("read 64 MiB         %.0f MB/s\n", 67108.864 / median_ms(5, [&] { take("many"); }));
  agent_ms = cpu_ms_of(sandbox_.agent_pid()) - agent_ms;
  std::printf("  of which the agent takes %.1f ms of processor time\n", agent_ms / 5);
  std::printf("write 64 MiB        %.0f MB/s\n", 67108.864 / median_ms(5, write));
}

}  // namespace
}  // namespace atl::agent
