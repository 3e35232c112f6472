// Loads a module from memory: the kernel must refuse before it looks at the bytes.
// victim: id=ESC-25
#include "victim.h"

int main(void) {
  static char image[4096] = "\177ELF";
  long result = syscall(SYS_init_module, image, sizeof image, "");
  attempt("init_module", result < 0 && errno == ENOEXEC ? 0 : result);
  return conclude();
}
