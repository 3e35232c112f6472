// Looks for paths of the host in /proc/self/cgroup and in the list of mounts.
// victim: id=LAT-12
#include "victim.h"

int main(void) {
  const char* state = told("STATE_DIRECTORY");
  if (state == NULL) return not_tried("nobody told about the state directory");
  static const char* const kFiles[] = {"/proc/self/cgroup", "/proc/self/mountinfo",
                                       "/proc/self/mounts"};
  for (size_t i = 0; i < sizeof kFiles / sizeof kFiles[0]; ++i)
    if (file_contains(kFiles[i], state)) broke("%s shows %s", kFiles[i], state);
  if (file_contains("/proc/self/cgroup", "/atoll"))
    broke("/proc/self/cgroup shows the host's tree");
  return conclude();
}
