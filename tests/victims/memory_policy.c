// Gives a page of a shared mapping a memory policy: a slab of the kernel for each, charged to
// nobody, that stays without any process.
// victim: id=RES-02
// not_behind=gvisor:the_policies_are_the_sentry's_own
#include <sys/mman.h>

#include "victim.h"

enum { kPreferred = 1, kSetMempolicyHomeNode = 450 };

int main(void) {
  unsigned long nodes = 1;
  void* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return not_tried("mmap: %s", strerror(errno));
  attempt("mbind", syscall(SYS_mbind, page, 4096, kPreferred, &nodes, 64, 0));
  attempt("set_mempolicy", syscall(SYS_set_mempolicy, kPreferred, &nodes, 64));
  long moved = syscall(SYS_move_pages, 0, 0, NULL, NULL, NULL, 0);
  attempt("move_pages", moved);
  attempt("migrate_pages", syscall(SYS_migrate_pages, 0, 64, &nodes, &nodes));
  return conclude();
}
