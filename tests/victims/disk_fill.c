// Writes a file beyond the limit of its disk.
// victim: id=RES-06 sandbox=fresh limits=disk_bytes:16777216 verdict=disk_limit timeout_ms=60000
#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would fill the disk of the host");
  static char piece[1 << 20];
  int fd = open("/tmp/fill", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return not_tried("/tmp/fill: %s", strerror(errno));
  int written = 0;
  for (unsigned i = 0; written < 64; ++written) {
    for (size_t at = 0; at < sizeof piece; ++at) piece[at] = (char)(i = i * 1103515245u + 12345u);
    // What fits of the last piece is written; only the next write says why no more.
    ssize_t got = write(fd, piece, sizeof piece);
    if (got >= 0 && got < (ssize_t)sizeof piece) got = write(fd, piece, sizeof piece);
    if (got < 0 || fsync(fd) != 0) break;
  }
  int number = errno;
  note("%d MiB, then %s", written, strerror(number));
  if (written >= 64) {
    broke("64 MiB of 16");
    return conclude();
  }
  return number == EDQUOT || number == ENOSPC ? kStoppedByLimit : kUnjudged;
}
