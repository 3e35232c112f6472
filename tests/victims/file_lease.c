// Takes a lease on the shared program, which would tell it when a neighbour opens that for writing.
// victim: id=LAT-03
#include "victim.h"

int main(void) {
  int fd = open("/victims/atoll-victims", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return not_tried("/victims/atoll-victims: %s", strerror(errno));
  if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0) {
    // Its own overlay's file, so the lease is its own too; the neighbour's beat goes on.
    note("lease taken");
  } else {
    note("F_SETLEASE: %s", strerror(errno));
  }
  return conclude();
}
