#include "agent/output_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace atl::agent {
namespace {

constexpr uint64_t kLimitBytes = 1000;

class OutputPipes : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    ASSERT_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    pipe_.open(Fd(ends[0]), OutputPipe::Kind::kPipe);
    program_ = Fd(ends[1]);
    ASSERT_TRUE(null_device_);
  }

  OutputPipe pipe_{kLimitBytes};
  Fd program_;
  Fd null_device_{open("/dev/null", O_WRONLY | O_CLOEXEC)};
};

TEST_F(OutputPipes, WhatIsPresentIsTakenAndTheRestCut) {
  std::string text(5000, 'x');
  ASSERT_EQ(write(program_.get(), text.data(), text.size()), 5000);
  pipe_.read_present(null_device_.get());
  EXPECT_EQ(pipe_.stream().produced(), kLimitBytes);
  EXPECT_EQ(pipe_.stream().cut(), 4000u);
}

TEST_F(OutputPipes, AnEndIsNoticed) {
  program_.reset();
  pipe_.read_present(null_device_.get());
  EXPECT_FALSE(pipe_.wants_read());
}

// Whoever followed it would do nothing else: no deadline would be looked at, no limit.
TEST_F(OutputPipes, AProgramThatPrintsOnIsNotFollowed) {
  std::thread printing([this] {
    std::string text(65536, 'x');
    for (uint64_t left = 256ull << 20; left > 0; left -= text.size())
      if (write(program_.get(), text.data(), text.size()) < 0) break;
    program_.reset();
  });
  constexpr uint64_t kMostOnce = 4ull << 20;  // of 256 MiB; a call takes 1 MiB and a pipe at most
  uint64_t most = 0;
  while (pipe_.wants_read()) {
    uint64_t before = pipe_.stream().cut();
    pipe_.read_present(null_device_.get());
    most = std::max(most, pipe_.stream().cut() - before);
  }
  printing.join();
  EXPECT_GT(most, 0u);
  EXPECT_LT(most, kMostOnce);
}

}  // namespace
}  // namespace atl::agent
