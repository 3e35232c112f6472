// Reserves more than its disk without writing a byte.
// victim: id=RES-06 sandbox=fresh limits=disk_bytes:16777216
#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would fill the disk of the host");
  int fd = open("/tmp/reserve", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return not_tried("/tmp/reserve: %s", strerror(errno));
  if (fallocate(fd, 0, 0, 256 << 20) == 0) broke("256 MiB of 16 are reserved");
  note("fallocate: %s", strerror(errno));
  return conclude();
}
