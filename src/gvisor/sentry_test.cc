#include "gvisor/sentry.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace atl::gvisor {
namespace {

agent::GuestLimits some_limits() {
  return {.memory_bytes = 64 << 20,
          .disk_bytes = 1234567,
          .cpu_millis = 1500,
          .pids = 20,
          .open_files = 100,
          .kind = agent::GuestKind::kSentry};
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Sentry, ItsConfigurationBoundsTheLayerAndLeavesTheImageAsItIs) {
  std::string text = sentry_configuration(some_limits(), Toolbox::kNone);
  EXPECT_TRUE(contains(text, R"("readonly":true)")) << text;
  EXPECT_TRUE(contains(text, R"("size=1234567")")) << text;
  EXPECT_TRUE(contains(text, R"("args":["atoll-agent","sentry-guest"])")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '{'), std::count(text.begin(), text.end(), '}'));
  EXPECT_EQ(std::count(text.begin(), text.end(), '['), std::count(text.begin(), text.end(), ']'));
}

TEST(Sentry, HasTheToolboxAsASecondImage) {
  std::string without = sentry_configuration(some_limits(), Toolbox::kNone);
  EXPECT_FALSE(contains(without, kToolboxFile)) << without;
  std::string with = sentry_configuration(some_limits(), Toolbox::kMounted);
  EXPECT_TRUE(contains(with, R"("destination":"/run/toolbox","type":"erofs")")) << with;
  SentryFds fds = {};
  fds.image = 6;
  fds.toolbox = 9;
  std::vector<std::string> words = sentry_command(fds, some_limits());
  auto has = [&words](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  EXPECT_TRUE(has("--io-fds=6,9"));
  EXPECT_TRUE(has("--gofer-mount-confs=erofs:none,none:anon,erofs:none"));
}

TEST(Sentry, HasNoNetworkNoHostFilesAndAllProcessorsThatItMayUse) {
  SentryFds fds = {.configuration = 3,
                   .control = 4,
                   .started = 5,
                   .image = 6,
                   .layer = 7,
                   .program = 8,
                   .birth = 9,
                   .sudo = 10,
                   .copied_program = 14,
                   .input = 11,
                   .output = 12,
                   .error = 13,
                   .files = {},
                   .toolbox = -1};
  std::vector<std::string> words = sentry_command(fds, some_limits());
  auto has = [&words](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  for (const char* word : {"--network=none", "--host-uds=none", "--platform=systrap", "--cpu-num=2",
                           "--io-fds=6", "--gofer-filestore-fds=7", "--stdio-fds=11,12,13",
                           "--pass-fd=9:3", "--pass-fd=10:4", "--pass-fd=14:5"})
    EXPECT_TRUE(has(word)) << word;
  EXPECT_FALSE(has("--setup-root"));
  EXPECT_EQ(words.back(), "sandbox");
}

TEST(Sentry, TracesWhereItIsToldTo) {
  agent::GuestLimits limits = some_limits();
  limits.kind = agent::GuestKind::kTracingSentry;
  std::vector<std::string> words = sentry_command({}, limits);
  EXPECT_EQ(std::count(words.begin(), words.end(), "--platform=ptrace"), 1);
  EXPECT_EQ(std::count(words.begin(), words.end(), "--platform=systrap"), 0);
}

TEST(Sentry, BeginsWithFilesThatWereKeptIfThereAreAny) {
  SentryFds fds = {};
  auto restores = [](const std::string& word) { return word.starts_with("--fs-restore-fds"); };
  std::vector<std::string> words = sentry_command(fds, some_limits());
  EXPECT_TRUE(std::none_of(words.begin(), words.end(), restores));
  fds.files = {20, 21, 22, 23};
  words = sentry_command(fds, some_limits());
  EXPECT_EQ(words[words.size() - 2], "--fs-restore-fds=20,21,22,23");
}

TEST(Sentry, OnlyAnAnswerThatSaysSoIsASuccess) {
  EXPECT_TRUE(is_success(R"({"success":true,"err":"","result":{}})"));
  EXPECT_FALSE(is_success(R"({"success":false,"err":"\"success\":true,","result":null})"));
  EXPECT_FALSE(is_success(""));
}

}  // namespace
}  // namespace atl::gvisor
