// Raw sockets, by which packets with forged addresses are made.
// victim: id=ESC-29
#include <sys/socket.h>

#include <netinet/in.h>

#include "victim.h"

static void try_one(const char* what, int family, int type, int protocol) {
  int fd = socket(family, type, protocol);
  if (fd < 0 && errno == EPROTONOSUPPORT)
    note("%s: %s", what, strerror(errno));
  else
    attempt(what, fd);
}

int main(void) {
  try_one("raw IPv4", AF_INET, SOCK_RAW, IPPROTO_RAW);
  try_one("raw ICMP", AF_INET, SOCK_RAW, IPPROTO_ICMP);
  try_one("raw IPv6", AF_INET6, SOCK_RAW, IPPROTO_RAW);
  try_one("SCTP", AF_INET, SOCK_STREAM, IPPROTO_SCTP);
  try_one("MPTCP", AF_INET, SOCK_STREAM, IPPROTO_MPTCP);
  return conclude();
}
