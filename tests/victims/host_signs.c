// Reads what tells one host from another, or shows what its neighbours do.
// victim: id=LAT-10
// not_behind=gvisor:these_are_the_sentry's_own
#include "victim.h"

int main(void) {
  static const char* const kFiles[] = {
      "/proc/buddyinfo",       "/proc/cgroups",         "/proc/consoles",
      "/proc/devices",         "/proc/iomem",           "/proc/interrupts",
      "/proc/misc",            "/proc/pressure/cpu",    "/proc/pressure/io",
      "/proc/pressure/memory", "/proc/schedstat",       "/proc/slabinfo",
      "/proc/softirqs",        "/proc/swaps",           "/proc/sys/fs/dentry-state",
      "/proc/sys/fs/file-nr",  "/proc/sys/fs/inode-nr", "/proc/sys/kernel/pty/nr",
      "/proc/vmstat",          "/proc/zoneinfo"};
  for (size_t i = 0; i < sizeof kFiles / sizeof kFiles[0]; ++i) attempt_open(kFiles[i], O_RDONLY);
  return conclude();
}
