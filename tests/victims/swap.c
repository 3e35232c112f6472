// Swaps to a file of its own, and off.
// victim: id=ESC-26
#include <sys/swap.h>

#include "victim.h"

int main(void) {
  attempt("swapon", swapon("/proc/self/exe", 0));
  attempt("swapoff", swapoff("/proc/self/exe"));
  return conclude();
}
