// Clones a tree of mounts into a descriptor.
// victim: id=ESC-12
#include <sys/mount.h>

#include "victim.h"

int main(void) {
  attempt("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  return conclude();
}
