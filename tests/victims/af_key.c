// A socket of the old interface to IPsec.
// victim: id=ESC-29
#include <sys/socket.h>

#include "victim.h"

int main(void) {
  attempt("AF_KEY", socket(AF_KEY, SOCK_RAW, 2));
  return conclude();
}
