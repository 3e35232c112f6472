#include "sandbox/context.h"

#include <signal.h>

#include <gtest/gtest.h>

#include "sandbox/context_start.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

constexpr uint32_t kLong = 3'600'000;

class ContextTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made =
        bed_.run(start_context(sandbox_, ContextRequest{.language = "python", .environment = {}}));
    ASSERT_TRUE(made.ok()) << made.error().message();
    context_ = *made;
  }

  std::shared_ptr<ContextRun> start(std::string code, uint32_t timeout_ms) {
    RunRequest request{.code = std::move(code), .timeout_ms = timeout_ms};
    auto run = bed_.run(start_run(sandbox_, context_, std::move(request)));
    ATOLL_CHECK(run.ok());
    bed_.settle();
    return *run;
  }
  // As `verdict`, or `verdict, state lost`.
  std::string end_of(ContextRun& run) {
    SteadyTime deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (!run.ended() && std::chrono::steady_clock::now() < deadline) bed_.step();
    if (!run.ended()) return "still " + run.row().state;
    return run.row().verdict + (run.row().state_lost ? ", state lost" : "");
  }
  void begin(ContextRun& run) {
    EXPECT_TRUE(sandbox_->execs().control().signal(*run.exec(), SIGCONT).ok());
  }
  void restart(uint32_t run) {
    SandboxId id = sandbox_->id();
    ContextId context = context_->row().id;
    context_.reset();
    sandbox_.reset();
    bed_.restart();
    ASSERT_TRUE(bed_.run(bed_.sandboxes().adopt()).ok());
    bed_.settle();
    sandbox_ = bed_.sandboxes().find(store::kLocalTenant, id);
    ASSERT_TRUE(sandbox_);
    context_ = sandbox_->contexts().find(context);
    ASSERT_TRUE(context_ && context_->find_open(run));
  }

  TestBed bed_;
  std::shared_ptr<Sandbox> sandbox_ = bed_.create();
  std::shared_ptr<Context> context_;
};

TEST_F(ContextTest, AnInterruptBeforeTheInterpreterHasBegunIsKept) {
  auto run = start("slow", kLong);
  EXPECT_TRUE(context_->interrupt());
  bed_.settle();
  EXPECT_FALSE(run->ended());
  begin(*run);
  EXPECT_EQ(end_of(*run), "interrupted");
  EXPECT_EQ(end_of(*start("1", kLong)), "ok");
}

TEST_F(ContextTest, ATimeoutBeforeTheInterpreterHasBegunKeepsTheState) {
  auto run = start("slow", 1);
  SteadyTime late = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  while (std::chrono::steady_clock::now() < late) bed_.step();
  bed_.settle();
  EXPECT_FALSE(run->ended());
  begin(*run);
  EXPECT_EQ(end_of(*run), "wall_time");
  EXPECT_EQ(end_of(*start("1", kLong)), "ok");
}

TEST_F(ContextTest, ARunThatHasBegunIsInterruptedAtOnce) {
  auto run = start("loop", kLong);
  EXPECT_TRUE(context_->interrupt());
  EXPECT_EQ(end_of(*run), "interrupted");
  EXPECT_FALSE(context_->interrupt());
  EXPECT_EQ(end_of(*start("loop", 1)), "wall_time");
}

TEST_F(ContextTest, AfterARestartARunIsKnownToHaveBegunOrNot) {
  uint32_t begun = start("loop", kLong)->row().number;
  restart(begun);
  auto run = context_->find_open(begun);
  EXPECT_TRUE(context_->interrupt());
  EXPECT_EQ(end_of(*run), "interrupted");
  uint32_t slow = start("slow", kLong)->row().number;
  restart(slow);
  run = context_->find_open(slow);
  EXPECT_TRUE(context_->interrupt());
  bed_.settle();
  begin(*run);
  EXPECT_EQ(end_of(*run), "interrupted");
}

}  // namespace
}  // namespace atl::sandbox
