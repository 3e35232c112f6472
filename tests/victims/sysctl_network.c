// Changes settings of the network: the namespaced ones must be read-only too.
// victim: id=ESC-28
// not_behind=gvisor:its_network_is_the_sentry's_own
#include "victim.h"

int main(void) {
  attempt_rewrite("/proc/sys/net/ipv4/ip_forward");
  attempt_rewrite("/proc/sys/net/ipv4/conf/all/route_localnet");
  attempt_rewrite("/proc/sys/net/core/somaxconn");
  attempt_rewrite("/proc/sys/vm/overcommit_memory");
  return conclude();
}
