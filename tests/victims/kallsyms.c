// Reads the addresses of the kernel's symbols.
// victim: id=ESC-06
#include "victim.h"

int main(void) {
  attempt_open("/proc/kallsyms", O_RDONLY);
  return conclude();
}
