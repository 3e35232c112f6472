#include "linux/short_turns.h"

#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace atl::linux {

namespace {

constexpr uint64_t kTurnNanoseconds = 100'000;  // the least that the kernel takes

}  // namespace

Result<void> take_short_turns() {
  struct sched_attr attributes = {};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0)
    return Error::system("sched_getattr");
  attributes.sched_runtime = kTurnNanoseconds;
  if (syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) return Error::system("sched_setattr");
  return {};
}

}  // namespace atl::linux
