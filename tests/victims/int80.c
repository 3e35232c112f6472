// A call by the 32-bit gate, where the numbers mean other calls.
// victim: id=ESC-30
#include <signal.h>

#include "victim.h"

static long getpid_by_gate(void) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory");
  return result;
}

int main(void) {
  pid_t child = fork();
  if (child == 0) _exit(getpid_by_gate() > 0 ? 1 : 0);
  int status = wait_for(child);
  if (status == 1) broke("int 0x80 was obeyed");
  // SIGSEGV: the kernel was built without the gate.
  bool refused = status == 0 || status == 128 + SIGSYS || status == 128 + SIGSEGV;
  if (!refused && status != 1) unjudged("the child ended with %d", status);
  note("ended with %d", status);
  return conclude();
}
