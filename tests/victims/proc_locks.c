// Reads the file locks of all sandboxes and of the host, which carry data in their offsets.
// victim: id=LAT-03
#include "victim.h"

int main(void) {
  // One that every process namespace is shown, so that the file is not empty for want of locks.
  int fd = open("/tmp/proc_locks", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1};
  if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) != 0) return not_tried("lock: %s", strerror(errno));
  unlink("/tmp/proc_locks");
  attempt_open("/proc/locks", O_RDONLY);
  return conclude();
}
