#include "linux/capabilities.h"

#include <linux/capability.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "linux/clone.h"
#include "linux/pidfd.h"

namespace atl::linux {
namespace {

// Capabilities cannot be had back, so each case runs in a process of its own.
template <typename Body>
bool holds_in_child(Body body) {
  auto child = clone_process({});
  if (!child.ok()) return false;
  if (child->in_child()) _exit(body() ? 0 : 1);
  auto status = wait_for_exit(child->pidfd.get());
  return status.ok() && *status == 0;
}

constexpr uint64_t kKept = capability_mask({CAP_CHOWN, CAP_SETUID, CAP_BPF});

class Capabilities : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
  }
};

TEST_F(Capabilities, SetsAreReadBackAsTheyWereSet) {
  EXPECT_TRUE(holds_in_child([] {
    CapabilitySets wanted{.effective = capability_mask({CAP_CHOWN}),
                          .permitted = kKept,
                          .inheritable = capability_mask({CAP_CHOWN, CAP_SETUID}),
                          .bounding = kKept,
                          .ambient = capability_mask({CAP_SETUID})};
    if (!limit_bounding_set(kKept).ok() || !set_capabilities(wanted).ok()) return false;
    auto sets = read_capabilities();
    return sets.ok() && *sets == wanted;
  }));
}

TEST_F(Capabilities, FiveEmptySets) {
  EXPECT_TRUE(holds_in_child([] {
    if (!limit_bounding_set(0).ok() || !set_capabilities({}).ok()) return false;
    auto sets = read_capabilities();
    return sets.ok() && *sets == CapabilitySets{};
  }));
}

TEST_F(Capabilities, DroppedOnesCannotBeTakenBack) {
  EXPECT_TRUE(holds_in_child([] {
    if (!set_capabilities({.effective = kKept, .permitted = kKept}).ok()) return false;
    auto again = set_capabilities({.permitted = capability_mask({CAP_SYS_ADMIN})});
    return !again.ok() && again.error().system_errno() == EPERM;
  }));
}

TEST_F(Capabilities, BoundingSetNeedsSetpcap) {
  EXPECT_TRUE(holds_in_child([] {
    if (!set_capabilities({.effective = kKept, .permitted = kKept}).ok()) return false;
    return !limit_bounding_set(0).ok();
  }));
}

}  // namespace
}  // namespace atl::linux
