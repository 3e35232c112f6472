// All five capability sets: empty for a user; for root inside exactly the nine that are promised,
// and nothing to inherit.
// victim: id=ESC-21
// not_behind=gvisor:its_kernel_tells_of_no_ambient_set
#include <linux/capability.h>

#include "victim.h"

#define BIT(capability) (1ull << (capability))

static void check(const char* set, uint64_t wanted) {
  static char status[8192];
  char line[32];
  snprintf(line, sizeof line, "%s:\t", set);
  const char* found =
      read_text("/proc/self/status", status, sizeof status) > 0 ? strstr(status, line) : NULL;
  if (found == NULL) {
    unjudged("%s is not in /proc/self/status", set);
    return;
  }
  uint64_t got = strtoull(found + strlen(line), NULL, 16);
  if (got != wanted) broke("%s is %llx", set, (unsigned long long)got);
}

int main(void) {
  uint64_t root = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) |
                  BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_KILL) | BIT(CAP_NET_BIND_SERVICE) |
                  BIT(CAP_SYS_CHROOT);
  uint64_t wanted = getuid() == 0 ? root : 0;
  check("CapInh", 0);
  check("CapPrm", wanted);
  check("CapEff", wanted);
  check("CapBnd", wanted);
  check("CapAmb", 0);
  return conclude();
}
