// Takes the right to use I/O ports.
// victim: id=ESC-26
#include <sys/io.h>

#include "victim.h"

static long level(void) { return iopl(3); }
static long port(void) { return ioperm(0x80, 1, 1); }

int main(void) {
  attempt_in_child("iopl", level);
  attempt_in_child("ioperm", port);
  return conclude();
}
