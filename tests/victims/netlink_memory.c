// Opens the socket whose acknowledgements nobody need read: they are charged to nobody.
// victim: id=RES-02
#include <linux/netlink.h>
#include <sys/socket.h>

#include "victim.h"

int main(void) {
  attempt("NETLINK_ROUTE", socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
  attempt("NETLINK_ROUTE, datagrams", socket(AF_NETLINK, SOCK_DGRAM, NETLINK_ROUTE));
  return conclude();
}
