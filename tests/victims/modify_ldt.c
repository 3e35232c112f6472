// Installs a 16-bit code segment.
// victim: id=ESC-34
#include <asm/ldt.h>

#include "victim.h"

int main(void) {
  struct user_desc segment = {.entry_number = 0, .limit = 1, .contents = 2, .useable = 1};
  attempt("modify_ldt", (int)syscall(SYS_modify_ldt, 1, &segment, sizeof segment));
  return conclude();
}
