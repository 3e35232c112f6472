// For tests of one exec after the other in the real agent, with and without a spawner.
#pragma once

#include <gtest/gtest.h>

#include "agent/fixture_test.h"

namespace atl::agent {

class ExecCase : public testing::TestWithParam<Starter> {
 protected:
  explicit ExecCase(TestLimits limits = {}) : sandbox_(GetParam(), limits) {}

  void SetUp() override {
    if (!sandbox_.problem().empty()) GTEST_SKIP() << sandbox_.problem();
    daemon_.connect();
  }
  void TearDown() override {
    if (!sandbox_.problem().empty()) return;
    EXPECT_TRUE(daemon_.run_until([this] { return sandbox_.leaves().empty(); }));
    EXPECT_TRUE(sandbox_.agent_is_alive());
    EXPECT_EQ(daemon_.contradiction(), "");
  }

  Record run(const Start& start) {
    uint32_t exec = next_exec_++;
    daemon_.start(exec, start);
    return daemon_.finish(exec);
  }
  Record& record(uint32_t exec) { return daemon_.record(exec); }
  bool prints(uint32_t exec, std::string_view text) {
    return daemon_.run_until([&] { return record(exec).out.find(text) != std::string::npos; });
  }
  void type(uint32_t exec, uint64_t offset, std::string_view data) {
    daemon_.send_raw(encode(exec, Input{offset, data}));
  }
  void end_input(uint32_t exec, uint64_t offset) {
    daemon_.send_raw(encode_input_end(exec, offset));
  }
  bool takes(uint32_t exec, uint64_t offset) {
    return daemon_.run_until(
        [&] { return record(exec).input && record(exec).input->offset >= offset; });
  }
  bool closes_input(uint32_t exec) {
    return daemon_.run_until([&] { return record(exec).input && record(exec).input->closed; });
  }
  void kill(uint32_t exec) { daemon_.send_raw(encode_signal(exec, 9)); }

  TestSandbox sandbox_;
  TestDaemon daemon_{sandbox_};
  uint32_t next_exec_ = 1;
};

inline std::string starter_name(const testing::TestParamInfo<Starter>& starter) {
  return starter.param == Starter::kAgent ? "Agent" : "Spawner";
}

}  // namespace atl::agent
