// A host whose kernel memory grows by what its sandboxes do, on a clock that moves when told.
#include "warden/kernel_memory_watch.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <random>
#include <utility>

#include <gtest/gtest.h>

namespace atl::warden {
namespace {

using std::chrono::milliseconds;
using What = WatchOrder::What;

constexpr double kMiB = 1 << 20;
constexpr uint64_t kGrowth = 96 << 20;

struct Inmate {
  SandboxId id = SandboxId::draw();
  double bytes_per_ms = 0;  // that nobody is charged for, while it runs
  double busy = 0;          // share of a processor that it is in the kernel
  bool is_stopped = false;
  bool is_ended = false;
  double system_us = 0;
  double stopped_ms = 0;  // in a row
  double gives_back = 0;  // at its end
  bool runs() const { return !is_stopped && !is_ended; }
};

class World {
 public:
  Inmate& add(double mib_per_second, double busy) {
    inmates_.push_back({.bytes_per_ms = mib_per_second * kMiB / 1000, .busy = busy});
    return inmates_.back();
  }
  double host_bytes_per_ms = 0;
  double most_growers = 1000;
  double charged = 0;
  double most_bytes = 0, longest_stop_ms = 0;

  void run(
      milliseconds time, const std::function<void()>& each = [] {}) {
    for (auto end = clock_.steady_now() + time; clock_.steady_now() < end;) {
      milliseconds pause = watch_.pause();
      clock_.advance(pause);
      pass(static_cast<double>(pause.count()));
      std::vector<Suspect> suspects;
      if (watch_.wants_suspects()) suspects = all_that_live();
      KernelMemory memory = {static_cast<uint64_t>(bytes_ + charged),
                             static_cast<uint64_t>(charged)};
      for (const WatchOrder& order : watch_.look(clock_.steady_now(), memory, suspects))
        carry_out(order);
      each();
    }
  }
  size_t ended() const {
    return static_cast<size_t>(std::count_if(inmates_.begin(), inmates_.end(),
                                             [](const Inmate& one) { return one.is_ended; }));
  }
  size_t stopped() const {
    return static_cast<size_t>(std::count_if(inmates_.begin(), inmates_.end(),
                                             [](const Inmate& one) { return one.is_stopped; }));
  }
  bool passes_over = false;
  double first_bytes = 300 * kMiB;

 private:
  std::vector<Suspect> all_that_live() const {
    std::vector<Suspect> suspects;
    for (const Inmate& one : inmates_)
      if (!one.is_ended) suspects.push_back({one.id, static_cast<uint64_t>(one.system_us)});
    return suspects;
  }
  void pass(double ms) {
    bytes_ += host_bytes_per_ms * ms;
    auto growers = std::count_if(inmates_.begin(), inmates_.end(), [](const Inmate& one) {
      return one.runs() && one.bytes_per_ms > 0;
    });
    double share = std::min(1.0, most_growers / std::max(1.0, static_cast<double>(growers)));
    for (Inmate& one : inmates_) {
      one.stopped_ms = one.is_stopped ? one.stopped_ms + ms : 0;
      longest_stop_ms = std::max(longest_stop_ms, one.stopped_ms);
      if (one.is_stopped) continue;
      bytes_ += one.bytes_per_ms * ms * share;
      if (one.is_ended) one.bytes_per_ms = 0;  // it does not die at once
      if (one.is_ended) bytes_ -= std::exchange(one.gives_back, 0);
      one.system_us += one.busy * ms * 1000;
    }
    most_bytes = std::max(most_bytes, bytes_);
  }
  void carry_out(const WatchOrder& order) {
    for (Inmate& one : inmates_) {
      if (one.id != order.id) continue;
      if (order.what == What::kStop && passes_over) return watch_.pass_over(one.id);
      one.is_stopped = order.what == What::kStop;
      one.is_ended |= order.what == What::kEnd;
    }
  }

  FakeClock clock_;
  KernelMemoryWatch watch_{kGrowth};
  std::deque<Inmate> inmates_;
  double bytes_ = first_bytes;
};

TEST(KernelMemoryWatch, EndsTheOneThatGrowsAndNotTheOneThatIsBusier) {
  World world;
  Inmate& neighbour = world.add(0, 0.9);
  Inmate& grower = world.add(30, 0.4);
  world.run(std::chrono::seconds(20));
  EXPECT_TRUE(grower.is_ended);
  EXPECT_TRUE(neighbour.runs());
  EXPECT_EQ(world.stopped(), 0u);
  EXPECT_LT(world.most_bytes - world.first_bytes, 160 * kMiB);
}

TEST(KernelMemoryWatch, EndsTheFastestBeforeItHasMuchMore) {
  World world;
  Inmate& grower = world.add(250, 1);
  for (int i = 0; i < 10; ++i) world.add(0, 0.1);
  world.run(std::chrono::seconds(10));
  EXPECT_TRUE(grower.is_ended);
  EXPECT_EQ(world.ended(), 1u);
  EXPECT_LT(world.most_bytes - world.first_bytes, 256 * kMiB);
}

TEST(KernelMemoryWatch, TriesNobodyElseOnceTheMemoryIsBack) {
  World world;
  for (int i = 0; i < 10; ++i) world.add(0, 0.5);
  Inmate& grower = world.add(30, 0.4);
  grower.gives_back = 90 * kMiB;
  for (int i = 0; i < 1200 && !grower.is_ended; ++i) world.run(milliseconds(50));
  EXPECT_TRUE(grower.is_ended);
  world.run(milliseconds(700));
  EXPECT_EQ(world.stopped(), 0u);
  EXPECT_EQ(world.ended(), 1u);
}

TEST(KernelMemoryWatch, EndsSeveralOfThemAndNoOther) {
  World world;
  world.most_growers = 2;  // at a time, on two processors: each is the faster the fewer there are
  for (int i = 0; i < 20; ++i) world.add(30, 0.1);
  for (int i = 0; i < 5; ++i) world.add(0, 0.2);
  world.run(std::chrono::minutes(10));
  EXPECT_EQ(world.ended(), 20u);
  EXPECT_LT(world.longest_stop_ms, 70'000);
  EXPECT_EQ(world.stopped(), 0u);
}

TEST(KernelMemoryWatch, EndsNobodyForWhatTheHostDoes) {
  World world;
  world.host_bytes_per_ms = 0.02 * kMiB;
  for (int i = 0; i < 5; ++i) world.add(0, 0.2);
  world.run(std::chrono::seconds(60));
  EXPECT_EQ(world.ended(), 0u);
  EXPECT_EQ(world.stopped(), 0u);
}

TEST(KernelMemoryWatch, EndsNobodyForWhatIsCharged) {
  World world;
  world.add(0, 0.9);
  world.run(std::chrono::seconds(60), [&] {
    world.charged += 2 * kMiB;
    EXPECT_EQ(world.stopped(), 0u);
  });
  EXPECT_EQ(world.ended(), 0u);
}

TEST(KernelMemoryWatch, EndsNobodyForGrowthThatHappensToStopWithIt) {
  World world;
  Inmate& innocent = world.add(0, 0.9);
  world.host_bytes_per_ms = 0.05 * kMiB;
  world.run(std::chrono::seconds(30), [&] {
    if (innocent.is_stopped) world.host_bytes_per_ms = 0;
  });
  EXPECT_EQ(world.host_bytes_per_ms, 0);
  EXPECT_EQ(world.ended(), 0u);
  EXPECT_TRUE(innocent.runs());
}

TEST(KernelMemoryWatch, EndsNobodyForWhatTheHostDoesNowAndThen) {
  World world;
  for (int i = 0; i < 3; ++i) world.add(0, 0.3);
  std::mt19937 random(1);
  world.run(std::chrono::hours(1), [&] {
    bool changes = random() % 8 == 0;
    if (changes) world.host_bytes_per_ms = (random() % 3 == 0 ? 0.08 : 0) * kMiB;
  });
  EXPECT_EQ(world.ended(), 0u);
}

TEST(KernelMemoryWatch, TakesWhatGrowsSlowlyForUsual) {
  World world;
  world.add(0, 0.9);
  world.host_bytes_per_ms = kDriftBytesPerSecond / 1000.0 / 2;
  world.run(std::chrono::hours(2), [&] { EXPECT_EQ(world.stopped(), 0u); });
  EXPECT_EQ(world.ended(), 0u);
}

TEST(KernelMemoryWatch, PassesOverWhatOthersWorkOn) {
  World world;
  world.passes_over = true;
  Inmate& grower = world.add(30, 0.4);
  world.run(std::chrono::seconds(8));
  EXPECT_TRUE(grower.runs());
  world.passes_over = false;
  world.run(std::chrono::seconds(20));
  EXPECT_TRUE(grower.is_ended);
}

}  // namespace
}  // namespace atl::warden
