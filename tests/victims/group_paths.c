// Looks for paths of the host in /proc/self/cgroup and in the list of mounts. A v1 group is entered
// after the namespace is made, so its line shows where Atoll keeps the sandbox's own group, no more
// (SECURITY.md).
// victim: id=LAT-12
// not_behind=gvisor:its_groups_are_the_sentry's_own,microvm:its_groups_are_the_guest's_own
#include "victim.h"

// "4:memory:/atoll/<8 digits>/<own id>", or below what the namespace shows as "/".
static int is_known(const char* line) {
  const char* path = strchr(line, ':');
  path = path == NULL ? NULL : strchr(path + 1, ':');
  if (path == NULL) return 0;
  ++path;
  if (strncmp(line, "0:", 2) == 0) return strncmp(path, "/run/", 5) == 0;
  if (strcmp(path, "/\n") == 0) return 1;
  while (strncmp(path, "/..", 3) == 0) path += 3;  // from where the namespace was made
  return strncmp(path, "/atoll/", 7) == 0 && strlen(path) == 7 + 8 + 1 + 20 + 1;
}

int main(void) {
  const char* state = told("STATE_DIRECTORY");
  if (state == NULL) return not_tried("nobody told about the state directory");
  static const char* const kFiles[] = {"/proc/self/cgroup", "/proc/self/mountinfo",
                                       "/proc/self/mounts"};
  for (size_t i = 0; i < sizeof kFiles / sizeof kFiles[0]; ++i)
    if (file_contains(kFiles[i], state)) broke("%s shows %s", kFiles[i], state);
  FILE* groups = fopen("/proc/self/cgroup", "r");
  char line[512];
  while (groups != NULL && fgets(line, sizeof line, groups) != NULL)
    if (!is_known(line)) broke("/proc/self/cgroup shows %s", line);
  return conclude();
}
