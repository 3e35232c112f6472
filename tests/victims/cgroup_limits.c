// Raises its own memory limit and moves itself to the root group through /sys/fs/cgroup.
// victim: id=ESC-05
#include "victim.h"

int main(void) {
  static const char* const kPaths[] = {
      "/sys/fs/cgroup/cgroup.procs",         "/sys/fs/cgroup/memory.max",
      "/sys/fs/cgroup/memory/cgroup.procs",  "/sys/fs/cgroup/memory/memory.limit_in_bytes",
      "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/devices/devices.allow",
      "/sys/fs/cgroup/unified/cgroup.procs",
  };
  for (size_t i = 0; i < sizeof kPaths / sizeof kPaths[0]; ++i) attempt_open(kPaths[i], O_WRONLY);
  return conclude();
}
