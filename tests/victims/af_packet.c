// A socket that sees every packet.
// victim: id=ESC-29
#include <linux/if_ether.h>
#include <sys/socket.h>

#include <arpa/inet.h>

#include "victim.h"

int main(void) {
  attempt("AF_PACKET raw", socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)));
  attempt("AF_PACKET datagram", socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_IP)));
  return conclude();
}
