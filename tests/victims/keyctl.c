// Reads and joins keyrings.
// victim: id=ESC-24
#include <linux/keyctl.h>

#include "victim.h"

int main(void) {
  attempt("join", syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, "atoll", 0, 0, 0));
  attempt("id", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1, 0, 0));
  return conclude();
}
