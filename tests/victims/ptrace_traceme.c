// Offers itself for tracing to whoever started it.
// victim: id=ESC-19
#include <sys/ptrace.h>

#include "victim.h"

static long call(void) { return ptrace(PTRACE_TRACEME, 0, 0, 0); }

int main(void) {
  attempt_in_child("PTRACE_TRACEME", call);
  return conclude();
}
