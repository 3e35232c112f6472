// Makes empty files with long names until it may not: their names are bytes too.
// victim: id=RES-07 sandbox=fresh limits=disk_bytes:16777216 verdict=disk_limit timeout_ms=60000
// instead=gvisor:disk_limit|stopped|oom|sandbox_gone:its_groups_only_count
#include <sys/stat.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would fill the disk of the host");
  if (mkdir("/tmp/many", 0755) != 0 || chdir("/tmp/many") != 0) return not_tried("/tmp/many");
  char name[240];
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  for (int made = 0; made < 400000; ++made) {
    snprintf(name, 8, "%07d", made);
    name[7] = 'x';
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0) {
      note("stopped after %d: %s", made, strerror(errno));
      return kStoppedByLimit;
    }
    close(fd);
  }
  broke("400000 files with 240 bytes of name on a disk of 16 MiB");
  return conclude();
}
