#include "microvm/monitor.h"

#include <sys/socket.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "linux/unix_socket.h"

namespace atl::microvm {
namespace {

constexpr const char* kGreeting = "{\"QMP\": {\"version\": {}}}\r\n";
constexpr const char* kDone = "{\"return\": {}}\r\n";

// What QEMU says, each after the next line of the keeper's; the first at once.
class Qemu {
 public:
  explicit Qemu(std::vector<std::string> says) {
    auto pair = linux::make_socket_pair(SOCK_STREAM);
    EXPECT_TRUE(pair.ok());
    keepers_ = std::move(pair->ours);
    own_ = std::move(pair->theirs);
    talk_ = std::thread([this, says = std::move(says)] { talk(says); });
  }
  ~Qemu() {
    keepers_.reset();
    if (talk_.joinable()) talk_.join();
  }
  Fd take_socket() { return std::move(keepers_); }
  std::vector<std::string> heard() {
    talk_.join();
    return heard_;
  }

 private:
  void talk(const std::vector<std::string>& says) {
    for (size_t i = 0; i < says.size(); ++i) {
      if (i > 0 && !hear()) return;
      (void)send(own_.get(), says[i].data(), says[i].size(), MSG_NOSIGNAL);
    }
    own_.reset();
  }
  bool hear() {
    std::string line;
    for (char byte; line.empty() || line.back() != '\n'; line += byte)
      if (read(own_.get(), &byte, 1) != 1) return false;
    heard_.push_back(line);
    return true;
  }

  Fd keepers_, own_;
  std::vector<std::string> heard_;
  std::thread talk_;
};

std::string status(const char* name) {
  return std::string("{\"return\": {\"status\": \"") + name + "\"}}\r\n";
}
constexpr const char* kEvent = "{\"timestamp\": {}, \"event\": \"STOP\"}\r\n";

TEST(Monitor, SavesAndWaitsForTheEnd) {
  Qemu qemu({kGreeting, kDone, kDone, kDone, std::string(kEvent) + kDone, status("active"),
             status("completed")});
  auto monitor = Monitor::open(qemu.take_socket());
  ASSERT_TRUE(monitor.ok());
  ASSERT_TRUE(monitor->prepare(STDIN_FILENO).ok());
  ASSERT_TRUE(monitor->save().ok());
  std::vector<std::string> heard = qemu.heard();
  ASSERT_EQ(heard.size(), 6u);
  EXPECT_NE(heard[1].find("x-ignore-shared"), std::string::npos);
  EXPECT_NE(heard[3].find("\"migrate\""), std::string::npos);
}

TEST(Monitor, RestoresAndWaitsUntilItRuns) {
  Qemu qemu({kGreeting, kDone, kDone, kDone, kDone, status("inmigrate"), status("running")});
  auto monitor = Monitor::open(qemu.take_socket());
  ASSERT_TRUE(monitor.ok());
  ASSERT_TRUE(monitor->prepare(STDIN_FILENO).ok());
  EXPECT_TRUE(monitor->restore().ok());
}

TEST(Monitor, StandsStillAndGoesOn) {
  Qemu qemu({kGreeting, kDone, std::string(kEvent) + kDone, kDone, kDone});
  auto monitor = Monitor::open(qemu.take_socket());
  ASSERT_TRUE(monitor.ok());
  ASSERT_TRUE(monitor->stop().ok());
  ASSERT_TRUE(monitor->go_on().ok()) << "waits for no answer";
  ASSERT_TRUE(monitor->stop().ok()) << "and is not confused by it";
  std::vector<std::string> heard = qemu.heard();
  ASSERT_EQ(heard.size(), 4u);
  EXPECT_NE(heard[1].find("\"stop\""), std::string::npos);
  EXPECT_NE(heard[2].find("\"cont\""), std::string::npos);
}

TEST(Monitor, OneThatDoesNotStandStillInTimeGoesOnWhenItDoes) {
  Qemu qemu({kGreeting, kDone, "", std::string(kDone) + kDone, kDone});
  auto monitor = Monitor::open(qemu.take_socket());
  ASSERT_TRUE(monitor.ok());
  EXPECT_EQ(monitor->stop().error().system_errno(), ETIMEDOUT);
  EXPECT_TRUE(monitor->stop().ok());
  std::vector<std::string> heard = qemu.heard();
  ASSERT_EQ(heard.size(), 4u);
  EXPECT_NE(heard[2].find("\"cont\""), std::string::npos);
}

TEST(Monitor, WhatFailsOrIsNoAnswerIsAnError) {
  for (const std::string& answer : {std::string("{\"error\": {\"desc\": \"no\"}}\r\n"),
                                    std::string("nonsense\r\n"), std::string(200'000, 'x')}) {
    Qemu qemu({kGreeting, kDone, answer});
    auto monitor = Monitor::open(qemu.take_socket());
    ASSERT_TRUE(monitor.ok());
    EXPECT_FALSE(monitor->prepare(STDIN_FILENO).ok());
  }
  Qemu failing({kGreeting, kDone, kDone, kDone, kDone, status("failed")});
  auto monitor = Monitor::open(failing.take_socket());
  ASSERT_TRUE(monitor.ok());
  ASSERT_TRUE(monitor->prepare(STDIN_FILENO).ok());
  EXPECT_FALSE(monitor->save().ok());
  Qemu silent({"{}\r\n"});
  EXPECT_FALSE(Monitor::open(silent.take_socket()).ok());
}

}  // namespace
}  // namespace atl::microvm
