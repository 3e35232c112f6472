// A socket of the kernel's cryptography, the surface of many escapes.
// victim: id=ESC-29
#include <sys/socket.h>

#include "victim.h"

int main(void) {
  attempt("AF_ALG", socket(AF_ALG, SOCK_SEQPACKET, 0));
  return conclude();
}
