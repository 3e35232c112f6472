// A new file system by the calls that replaced mount(2).
// victim: id=ESC-12
#include "victim.h"

int main(void) {
  attempt("fsopen tmpfs", syscall(SYS_fsopen, "tmpfs", 1));
  attempt("fsopen ext4", syscall(SYS_fsopen, "ext4", 1));
  return conclude();
}
