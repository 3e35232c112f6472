// Fills pipes, whose buffers are the kernel's memory: they must count as its own, or be few.
// victim: id=RES-02 sandbox=fresh limits=memory_bytes:67108864 verdict=oom|ok|nonzero
// instead=gvisor:oom|ok|nonzero|sandbox_gone:its_groups_only_count
#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("a memory bomb is not for a host");
  static char piece[1 << 20];
  size_t total = 0;
  for (int i = 0; i < 400; ++i) {
    int ends[2];
    if (pipe2(ends, O_NONBLOCK) != 0) break;
    fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
    ssize_t got = write(ends[1], piece, sizeof piece);
    if (got > 0) total += (size_t)got;
  }
  note("%zu bytes in pipes", total);
  if (total > 128u << 20) broke("%zu MiB of 64 in pipes", total >> 20);
  return conclude();
}
