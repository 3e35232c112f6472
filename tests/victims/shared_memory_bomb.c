// Fills /dev/shm: it has a size of its own, and counts as memory of the sandbox.
// victim: id=RES-02 sandbox=fresh limits=memory_bytes:134217728
#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("a memory bomb is not for a host");
  static char piece[1 << 20];
  memset(piece, 7, sizeof piece);
  int fd = open("/dev/shm/bomb", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return not_tried("/dev/shm: %s", strerror(errno));
  int written = 0;
  while (written < 256 && write(fd, piece, sizeof piece) == sizeof piece) ++written;
  note("%d MiB, then %s", written, strerror(errno));
  if (written >= 256) broke("256 MiB in /dev/shm");
  unlink("/dev/shm/bomb");
  return conclude();
}
