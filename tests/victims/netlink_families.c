// The netlink families that configure the host: all but the one for routes must be closed.
// victim: id=ESC-29
#include <linux/netlink.h>
#include <sys/socket.h>

#include "victim.h"

int main(void) {
  static const struct {
    const char* name;
    int number;
  } kFamilies[] = {{"NETLINK_XFRM", NETLINK_XFRM},
                   {"NETLINK_NETFILTER", NETLINK_NETFILTER},
                   {"NETLINK_AUDIT", NETLINK_AUDIT},
                   {"NETLINK_GENERIC", NETLINK_GENERIC},
                   {"NETLINK_KOBJECT_UEVENT", NETLINK_KOBJECT_UEVENT},
                   {"NETLINK_CONNECTOR", NETLINK_CONNECTOR},
                   {"NETLINK_CRYPTO", NETLINK_CRYPTO},
                   {"NETLINK_SOCK_DIAG", NETLINK_SOCK_DIAG},
                   {"NETLINK_SCSI", NETLINK_SCSITRANSPORT}};
  for (size_t i = 0; i < sizeof kFamilies / sizeof kFamilies[0]; ++i) {
    int fd = socket(AF_NETLINK, SOCK_RAW, kFamilies[i].number);
    if (fd >= 0) broke("%s opened", kFamilies[i].name);
    if (fd < 0) note("%s: %s", kFamilies[i].name, strerror(errno));
  }
  return conclude();
}
