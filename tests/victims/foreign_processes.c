// Looks for processes in /proc that are not of this sandbox: process 1 must be the agent.
// victim: id=ESC-18
// not_behind=gvisor:its_namespaces_are_all_the_sentry's,microvm:its_process_1_is_the_guest's_own
#include <dirent.h>

#include "victim.h"

int main(void) {
  char name[64] = "";
  if (read_text("/proc/1/comm", name, sizeof name) < 0) unjudged("/proc/1/comm is not there");
  // Executed from memory, and cut to 15 letters: "memfd:atoll-age".
  if (strstr(name, "atoll-age") == NULL) broke("process 1 is %s", name);
  DIR* directory = opendir("/proc");
  for (struct dirent* entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
    if (atoi(entry->d_name) <= 0 || read_text(path, name, sizeof name) <= 0) continue;
    name[strcspn(name, "\n")] = '\0';
    if (strcmp(name, "atolld") == 0 || strcmp(name, "atoll-warden") == 0 ||
        strcmp(name, "kthreadd") == 0)
      broke("sees %s as process %s", name, entry->d_name);
  }
  closedir(directory);
  return conclude();
}
