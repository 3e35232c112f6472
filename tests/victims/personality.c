// Makes everything readable executable for the programs it starts.
// victim: id=ESC-34
#include <sys/personality.h>

#include "victim.h"

static long call(void) { return personality(READ_IMPLIES_EXEC | ADDR_COMPAT_LAYOUT); }

int main(void) {
  attempt_in_child("personality", call);
  return conclude();
}
