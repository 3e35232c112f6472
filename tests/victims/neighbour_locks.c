// Takes locks that a neighbour holds: on the shared program, and on namespaces. One that is held is
// a message.
// victim: id=LAT-03
#include <sys/file.h>

#include "neighbour.h"
#include "victim.h"

static void take(const char* path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    broke("%s is locked by a neighbour", path);
  close(fd);
}

int main(void) {
  take("/proc/self/exe");
  for (size_t i = 0; kNamespaces[i] != NULL; ++i) take(kNamespaces[i]);
  return conclude();
}
