// Opens files until it may not: its own limit must come before the host's.
// victim: id=RES-08
#include <sys/resource.h>

#include "victim.h"

int main(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  int opened = 0;
  while (opened < 1000000 && open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) ++opened;
  int number = errno;
  printf("%d descriptors, then %s\n", opened, strerror(number));
  if (number != EMFILE) broke("stopped by the host's limit, not by its own");
  return conclude();
}
