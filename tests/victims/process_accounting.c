// Has the kernel write a record of every process of the host into its file.
// victim: id=ESC-26
#include "victim.h"

int main(void) {
  // Off is what it is: the harmless half of the call, behind the same check.
  attempt("acct", acct(NULL));
  return conclude();
}
