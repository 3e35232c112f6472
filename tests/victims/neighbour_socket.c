// Connects to the abstract socket on which a neighbour listens.
// victim: id=LAT-05
#include <sys/socket.h>

#include "neighbour.h"
#include "victim.h"

int main(void) {
  struct sockaddr_un address = neighbour_address();
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(fd, (struct sockaddr*)&address, sizeof address) == 0)
    broke("connected to the neighbour");
  if (file_contains("/proc/net/unix", address.sun_path + 1)) broke("/proc/net/unix shows it");
  return conclude();
}
