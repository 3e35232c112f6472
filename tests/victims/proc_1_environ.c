// Reads the environment of process 1 and opens its descriptors.
// victim: id=ESC-19
// not_behind=gvisor:its_kernel_shows_the_agent's_/proc_to_all_in_the_sandbox
#include "victim.h"

int main(void) {
  attempt_open("/proc/1/environ", O_RDONLY);
  // Their numbers may be seen by root inside; what they are and what is behind them not.
  for (int fd = 0; fd < 16; ++fd) {
    char path[64], target[256];
    snprintf(path, sizeof path, "/proc/1/fd/%d", fd);
    if (readlink(path, target, sizeof target) >= 0) broke("%s can be read", path);
    if (open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) >= 0) broke("%s can be opened", path);
  }
  return conclude();
}
