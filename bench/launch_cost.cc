// Costs of a launch, of its steps and of the mount of its image. As root.
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <gtest/gtest.h>

#include "warden/images.h"
#include "warden/removal.h"
#include "warden/testing/forked_warden_test.h"

namespace atl::warden {
namespace {

constexpr auto kReplaced = std::filesystem::copy_options::overwrite_existing;

using namespace testing;

template <typename Number>
Number median(std::vector<Number> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

double microseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

// A static program, not isolated: fork, execve, its end.
double plain_start_us() {
  std::string program = program_path("warden-test-probe");
  auto begin = std::chrono::steady_clock::now();
  pid_t child = fork();
  if (child == 0) {
    execl(program.c_str(), program.c_str(), "end", nullptr);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return microseconds_since(begin);
}

// What a launch took without the groups, which will be made beforehand. While the helper moves the
// spawner into v1 groups, the jail is built and the agent executed: so much of that step stays.
double without_groups_us(double whole_us, const LaunchOutcome& outcome, double plain_us) {
  auto spent = [&](Step step) { return outcome.elapsed_us[static_cast<size_t>(step)]; };
  double jail_us = plain_us;
  for (Step step : {Step::kNamespaces, Step::kRoot, Step::kDevices, Step::kProc, Step::kMasks,
                    Step::kPivot, Step::kNetwork, Step::kCapabilities})
    jail_us += spent(step);
  return whole_us - spent(Step::kCgroup) - std::max(0.0, spent(Step::kSpawner) - jail_us);
}

TEST(LaunchCost, OfEachStep) {
  Directories directories;
  auto image = directories.make_image(kPlainImage);
  as_warden(directories, [&](Host& host) {
    constexpr size_t kCycles = 100;
    std::array<std::vector<uint32_t>, kLastStep + 1> spent;
    std::vector<double> plain, whole, without_groups;
    for (size_t i = 0; i < kCycles; ++i) {
      SandboxId id = SandboxId::draw();
      plain.push_back(plain_start_us());
      auto begin = std::chrono::steady_clock::now();
      LaunchOutcome outcome = launch(host, launch_request(id, image), {});
      whole.push_back(microseconds_since(begin));
      ASSERT_EQ(outcome.status, Status::kOk);
      without_groups.push_back(without_groups_us(whole.back(), outcome, plain.back()));
      for (size_t step = 0; step <= kLastStep; ++step)
        spent[step].push_back(outcome.elapsed_us[step]);
      ASSERT_TRUE(remove_isolate(host, id).ok());
      while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
    }
    for (size_t step = 1; step <= kLastStep; ++step) {
      std::sort(spent[step].begin(), spent[step].end());
      printf("%-14s p50 %6u us  p90 %6u us\n",
             std::string(step_name(static_cast<Step>(step))).c_str(), spent[step][kCycles / 2],
             spent[step][kCycles * 9 / 10]);
    }
    printf("plain fork and exec %.2f ms, launch %.2f ms, without groups %.2f ms\n",
           median(plain) / 1000, median(whole) / 1000, median(without_groups) / 1000);
    printf("isolation adds %.2f ms\n", (median(without_groups) - median(plain)) / 1000);
  });
}

// What starting from a built image costs before anybody has used it, and after. Of small images, or
// of the file that ATOLL_IMAGE_FILE names.
TEST(LaunchCost, OfTheMountOfAnImage) {
  Directories directories;
  std::vector<Digest> images;
  const char* real = getenv("ATOLL_IMAGE_FILE");
  const size_t count = real != nullptr ? 8 : 50;
  for (size_t i = 0; i < count; ++i) {
    images.push_back(Digest::from_bytes(directories.make_image(kPlainImage)));
    std::string made = directories.state() + "/images/" + images.back().string() + ".erofs";
    if (real != nullptr) std::filesystem::copy_file(real, made, kReplaced);
  }
  as_warden(directories, [&](Host& host) {
    auto timed = [&](const Digest& image) {
      auto begin = std::chrono::steady_clock::now();
      EXPECT_TRUE(mount_image(host, image).ok());
      return microseconds_since(begin);
    };
    std::vector<double> first, again;
    for (const Digest& image : images) first.push_back(timed(image));
    for (const Digest& image : images) again.push_back(timed(image));
    std::sort(first.begin(), first.end());
    printf("first mount p50 %.0f us  p90 %.0f us, mounted already p50 %.0f us\n", first[count / 2],
           first[count * 9 / 10], median(again));
  });
}

TEST(LaunchCost, OfACycle) {
  Directories directories;
  auto image = directories.make_image(kPlainImage);
  RunningWarden warden(directories, 0);
  auto client = Client::connect(directories.run());
  ASSERT_TRUE(client.has_value());
  std::vector<double> launches, removals;
  auto timed = [&](const Request& request) {
    auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(client->ask(request).status, Status::kOk);
    std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
    return spent.count();
  };
  for (int i = 0; i < 100; ++i) {
    SandboxId id = SandboxId::draw();
    launches.push_back(timed(launch_request(id, image)));
    removals.push_back(timed(simple_request(Operation::kRemove, id)));
  }
  std::sort(launches.begin(), launches.end());
  std::sort(removals.begin(), removals.end());
  printf("launch  p50 %.2f ms  p90 %.2f ms\nremoval p50 %.2f ms  p90 %.2f ms\n", launches[50],
         launches[90], removals[50], removals[90]);
}

}  // namespace
}  // namespace atl::warden
