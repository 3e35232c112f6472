// Looks at limits and processes that go by user: none of another sandbox may count here.
// victim: id=LAT-07
// not_behind=gvisor:its_ids_are_the_sentry's_own,microvm:its_ids_are_the_guest's_own
#include <dirent.h>

#include "victim.h"

int main(void) {
  int seen = 0;
  DIR* directory = opendir("/proc");
  if (directory == NULL) return not_tried("/proc: %s", strerror(errno));
  for (struct dirent* entry = readdir(directory); entry != NULL; entry = readdir(directory))
    if (atoi(entry->d_name) > 0) ++seen;
  closedir(directory);
  note("%d processes", seen);
  if (seen > 64) broke("%d processes are visible", seen);
  char map[256] = "";
  read_text("/proc/self/uid_map", map, sizeof map);
  unsigned long inside = 0, outside = 0, length = 0;
  if (sscanf(map, "%lu %lu %lu", &inside, &outside, &length) != 3) unjudged("uid_map: %s", map);
  if (inside == outside || length > 65536) broke("the ids are the host's: %s", map);
  return conclude();
}
