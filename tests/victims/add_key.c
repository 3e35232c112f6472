// Leaves a key for whoever has the same user next.
// victim: id=ESC-24
#include <linux/keyctl.h>

#include "victim.h"

int main(void) {
  attempt("add_key", syscall(SYS_add_key, "user", "atoll", "x", 1, KEY_SPEC_PROCESS_KEYRING));
  return conclude();
}
