// Fills System V shared memory, which no process needs to hold.
// victim: id=RES-02 sandbox=fresh limits=memory_bytes:67108864 verdict=oom
#include <sys/shm.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("a memory bomb is not for a host");
  for (int i = 0; i < 64; ++i) {
    int id = shmget(IPC_PRIVATE, 4 << 20, IPC_CREAT | 0600);
    char* piece = id < 0 ? (char*)-1 : shmat(id, NULL, 0);
    if (piece == (char*)-1) return not_tried("shm: %s", strerror(errno));
    memset(piece, i + 1, 4 << 20);
  }
  broke("256 MiB of 64");
  return conclude();
}
