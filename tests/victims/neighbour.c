// Not an attack: lives in another sandbox and holds what the LAT victims look for there, until it
// is killed. With the argument "beat" it answers with a sum of the shared program's bytes.
// victim: id=LAT-01 sandbox=none
#include "neighbour.h"

#include <mqueue.h>
#include <sys/file.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "victim.h"

static int beat(void) {
  static unsigned char piece[1 << 16];
  uint64_t sum = 14695981039346656037ull;
  int fd = open("/victims/atoll-victims", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return not_tried("/victims/atoll-victims: %s", strerror(errno));
  for (ssize_t got = read(fd, piece, sizeof piece); got > 0; got = read(fd, piece, sizeof piece))
    for (ssize_t i = 0; i < got; ++i) sum = (sum ^ piece[i]) * 1099511628211ull;
  printf("%016llx\n", (unsigned long long)sum);
  return kHeld;
}

static void lock(const char* path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) flock(fd, LOCK_EX | LOCK_NB);
}

int main(int count, char** values) {
  if (count > 1 && strcmp(values[1], "beat") == 0) return beat();
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un address = neighbour_address();
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 8) != 0)
    return not_tried("listen: %s", strerror(errno));
  shmget(kNeighbourKey, 4096, IPC_CREAT | 0666);
  mq_open(kNeighbourQueue, O_RDWR | O_CREAT | O_CLOEXEC, 0666, NULL);
  open(kNeighbourFile, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  open(kNeighbourTemporary, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  lock("/proc/self/exe");
  for (size_t i = 0; kNamespaces[i] != NULL; ++i) lock(kNamespaces[i]);
  printf("ready\n");
  fflush(stdout);
  sleep(count > 1 ? (unsigned)atoi(values[1]) : 3600);
  return kHeld;
}
