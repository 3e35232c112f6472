// Locks more memory than it may, in common pages and in secret ones.
// victim: id=RES-02
#include <sys/mman.h>

#include "victim.h"

enum { kMemfdSecret = 447 };

int main(void) {
  size_t size = 64 << 20;
  void* piece = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mlock(piece, size) == 0) broke("64 MiB are locked");
  note("mlock: %s", strerror(errno));
  attempt("memfd_secret", syscall(kMemfdSecret, 0));
  return conclude();
}
