// Fills a file in memory with four times what it may have.
// victim: id=RES-02 sandbox=fresh limits=memory_bytes:67108864 verdict=oom
// instead=gvisor:oom|sandbox_gone:its_groups_only_count
#include <sys/mman.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("a memory bomb is not for a host");
  static char piece[1 << 20];
  memset(piece, 7, sizeof piece);
  int fd = memfd_create("bomb", 0);
  for (int i = 0; i < 256; ++i)
    if (write(fd, piece, sizeof piece) != sizeof piece) return not_tried("%s", strerror(errno));
  broke("256 MiB of 64");
  return conclude();
}
