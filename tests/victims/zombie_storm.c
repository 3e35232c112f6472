// Leaves a thousand orphans behind: process 1 must take them all.
// victim: id=RES-13
// instead=gvisor:ok|wall_time:a_fork_takes_some_milliseconds_there
#include <dirent.h>

#include "victim.h"

static int zombies(void) {
  int found = 0;
  DIR* directory = opendir("/proc");
  for (struct dirent* entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/status", entry->d_name);
    if (atoi(entry->d_name) > 0 && file_contains(path, "State:\tZ")) ++found;
  }
  closedir(directory);
  return found;
}

int main(void) {
  if (!may_harm()) return not_tried("a thousand orphans are not for a host");
  for (int i = 0; i < 1000; ++i) {
    pid_t child = fork();
    if (child == 0) _exit(fork() >= 0 ? 0 : 1);
    if (child > 0) wait_for(child);
  }
  for (int i = 0; i < 100 && zombies() > 0; ++i) usleep(50000);
  int left = zombies();
  if (left > 0) broke("%d zombies are left after five seconds", left);
  return conclude();
}
