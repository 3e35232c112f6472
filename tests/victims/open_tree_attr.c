// Clones a tree of mounts and changes its attributes in one call, which newer kernels have.
// victim: id=ESC-12
#include <linux/mount.h>

#include "victim.h"

enum { kOpenTreeAttr = 467 };

int main(void) {
  struct mount_attr attributes = {.attr_clr = MOUNT_ATTR_RDONLY};
  attempt("open_tree_attr",
          syscall(kOpenTreeAttr, AT_FDCWD, "/", 1, &attributes, sizeof attributes));
  return conclude();
}
