// Switches disk quotas on.
// victim: id=ESC-26
#include <sys/quota.h>

#include "victim.h"

int main(void) {
  long result = quotactl(QCMD(Q_QUOTAON, USRQUOTA), "/dev/null", QFMT_VFS_V1, "/tmp/quota");
  // Not a block device: the kernel looks at that before it looks at the right.
  bool unreached = result < 0 && (errno == ENOTBLK || errno == ENODEV || errno == ENXIO);
  if (unreached)
    note("quotactl: %s", strerror(errno));
  else
    attempt("quotactl", result);
  return conclude();
}
