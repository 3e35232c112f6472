// Asks the kernel for a key, which may start a program on the host.
// victim: id=ESC-24
#include <linux/keyctl.h>

#include "victim.h"

int main(void) {
  long result = syscall(SYS_request_key, "user", "atoll", NULL, 0);
  // A search that found nothing was made.
  attempt("request_key", result < 0 && errno == ENOKEY ? 0 : result);
  return conclude();
}
