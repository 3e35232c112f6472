// Connects to a socket that a host process listens on, by its path.
// victim: id=ESC-11
#include <sys/socket.h>
#include <sys/un.h>

#include "victim.h"

int main(void) {
  const char* path = told("CANARY_SOCKET");
  if (path == NULL) return not_tried("nobody told about a canary socket");
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd < 0) return not_tried("socket: %s", strerror(errno));
  if (connect(fd, (struct sockaddr*)&address, sizeof address) == 0) broke("connected to %s", path);
  return conclude();
}
