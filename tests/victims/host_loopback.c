// Connects to a port of the host's loopback interface.
// victim: id=LAT-04
#include <sys/socket.h>

#include <arpa/inet.h>

#include "victim.h"

int main(void) {
  const char* port = told("CANARY_PORT");
  if (port == NULL) return not_tried("nobody told about a canary port");
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return not_tried("socket: %s", strerror(errno));
  if (connect(fd, (struct sockaddr*)&address, sizeof address) == 0) broke("connected to the host");
  note("connect: %s", strerror(errno));
  return conclude();
}
