// Raises its hard limits.
// victim: id=ESC-37
#include <sys/resource.h>

#include "victim.h"

int main(void) {
  static const struct {
    const char* name;
    int resource;
  } kLimits[] = {{"NOFILE", RLIMIT_NOFILE}, {"CORE", RLIMIT_CORE}, {"MEMLOCK", RLIMIT_MEMLOCK},
                 {"RTPRIO", RLIMIT_RTPRIO}, {"NICE", RLIMIT_NICE}, {"MSGQUEUE", RLIMIT_MSGQUEUE}};
  for (size_t i = 0; i < sizeof kLimits / sizeof kLimits[0]; ++i) {
    struct rlimit limit;
    getrlimit((__rlimit_resource_t)kLimits[i].resource, &limit);
    if (limit.rlim_max == RLIM_INFINITY) {
      broke("%s has no limit", kLimits[i].name);
      continue;
    }
    limit.rlim_max += 1;
    attempt(kLimits[i].name, setrlimit((__rlimit_resource_t)kLimits[i].resource, &limit));
  }
  return conclude();
}
