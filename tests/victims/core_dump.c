// Raises the limit of core files and crashes: no core may be written, here or on the host.
// victim: id=ESC-37
#include <sys/resource.h>
#include <sys/wait.h>

#include "victim.h"

int main(void) {
  struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(RLIMIT_CORE, &unlimited) == 0) broke("the limit of core files was raised");
  if (chdir("/tmp") != 0) return not_tried("chdir: %s", strerror(errno));
  pid_t child = fork();
  if (child == 0) abort();
  int status;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status) && WCOREDUMP(status)) broke("the kernel says that it dumped core");
  if (access("/tmp/core", F_OK) == 0) broke("/tmp/core is there");
  return conclude();
}
