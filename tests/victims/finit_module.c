// Loads a module from a file.
// victim: id=ESC-25
#include "victim.h"

int main(void) {
  int fd = open("/proc/self/exe", O_RDONLY);
  long result = syscall(SYS_finit_module, fd, "", 0);
  attempt("finit_module", result < 0 && errno == ENOEXEC ? 0 : result);
  return conclude();
}
