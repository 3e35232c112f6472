// A socket between a host and its guests, which no network namespace holds.
// victim: id=LAT-02
#include <sys/socket.h>

#include "victim.h"

int main(void) {
  attempt("AF_VSOCK", socket(AF_VSOCK, SOCK_STREAM, 0));
  return conclude();
}
