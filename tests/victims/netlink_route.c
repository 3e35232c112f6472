// Changes the network of its sandbox: takes the loopback interface down.
// victim: id=ESC-29
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "victim.h"

int main(void) {
  struct {
    struct nlmsghdr header;
    struct ifinfomsg interface;
  } request = {
      .header = {.nlmsg_len = sizeof request,
                 .nlmsg_type = RTM_NEWLINK,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
      // Sets IFF_UP, which it has already.
      .interface = {.ifi_index = 1, .ifi_flags = IFF_UP, .ifi_change = IFF_UP},
  };
  struct {
    struct nlmsghdr header;
    struct nlmsgerr error;
    char rest[256];
  } answer = {0};
  int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  if (fd < 0) {
    attempt("NETLINK_ROUTE", fd);
    return conclude();
  }
  if (send(fd, &request, sizeof request, 0) < 0 || recv(fd, &answer, sizeof answer, 0) < 0)
    return not_tried("netlink: %s", strerror(errno));
  errno = -answer.error.error;
  attempt("change of lo", errno == 0 ? 0 : -1);
  return conclude();
}
