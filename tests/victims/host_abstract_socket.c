// Connects to an abstract socket on which a host process listens.
// victim: id=LAT-05
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "victim.h"

int main(void) {
  const char* name = told("CANARY_ABSTRACT");
  if (name == NULL) return not_tried("nobody told about a canary socket");
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", name);
  socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(fd, (struct sockaddr*)&address, length) == 0) broke("connected to the host");
  if (file_contains("/proc/net/unix", name)) broke("/proc/net/unix shows it");
  return conclude();
}
