// Touches four times the memory it may have.
// victim: id=RES-02 sandbox=fresh limits=memory_bytes:67108864 verdict=oom
#include <sys/mman.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("a memory bomb is not for a host");
  for (int i = 0; i < 256; ++i) {
    char* piece = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece == MAP_FAILED) return not_tried("mmap: %s", strerror(errno));
    memset(piece, i + 1, 1 << 20);
  }
  broke("256 MiB of 64");
  return conclude();
}
