// The file rules must be in force, whatever it does with its own: no device node may be made, also
// not where in-sandbox root may write.
// victim: id=ESC-35
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would make device nodes on the host");
  mkdir("/tmp/rules", 0755);
  attempt("null device", mknod("/tmp/rules/null", S_IFCHR | 0600, makedev(1, 3)));
  attempt("block device", mknod("/dev/shm/block", S_IFBLK | 0600, makedev(7, 0)));
  if (link("/dev/null", "/tmp/rules/link") == 0) broke("a device was linked out of /dev");
  if (rename("/dev/null", "/tmp/rules/null") == 0) broke("a device was moved out of /dev");
  unlink("/tmp/rules/null");
  unlink("/dev/shm/block");
  rmdir("/tmp/rules");
  return conclude();
}
