// A socket that shares memory with a network driver.
// victim: id=ESC-29
#include <sys/socket.h>

#include "victim.h"

int main(void) {
  attempt("AF_XDP", socket(AF_XDP, SOCK_RAW, 0));
  return conclude();
}
