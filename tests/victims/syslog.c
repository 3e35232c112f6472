// Reads the kernel's log by system call.
// victim: id=ESC-26
#include <sys/klog.h>

#include "victim.h"

int main(void) {
  char text[256];
  attempt("read all", klogctl(3, text, sizeof text));
  attempt("size of the unread", klogctl(9, NULL, 0));
  return conclude();
}
