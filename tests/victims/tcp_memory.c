// Sends to itself what it never reads: the buffers of TCP must be charged to the sandbox.
// victim: id=RES-02 sandbox=fresh limits=memory_bytes:67108864 verdict=ok|oom
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "victim.h"

enum { kPairs = 200, kMostBytes = 128 << 20 };

static long fill(int fd) {
  static char bytes[65536];
  long sum = 0;
  ssize_t count;
  while ((count = send(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0) sum += count;
  return sum;
}

int main(void) {
  if (!may_harm()) return not_tried("would take memory of the host");
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof here;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, (struct sockaddr*)&here, sizeof here) != 0 ||
      listen(listener, kPairs) != 0 ||
      getsockname(listener, (struct sockaddr*)&here, &length) != 0)
    return not_tried("listen: %s", strerror(errno));
  long held = 0;
  for (int i = 0; i < kPairs && held < kMostBytes; ++i) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), most = 4 << 20;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, sizeof most);
    if (fd < 0 || connect(fd, (struct sockaddr*)&here, sizeof here) != 0) break;
    if (accept(listener, NULL, NULL) < 0) break;
    held += fill(fd);
  }
  note("%ld bytes in buffers", held);
  if (held >= kMostBytes) broke("%ld bytes beside 64 MiB", held);
  return conclude();
}
