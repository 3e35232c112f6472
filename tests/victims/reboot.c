// Switches the meaning of Ctrl-Alt-Del, the harmless command of reboot(2).
// victim: id=ESC-26
#include <linux/reboot.h>

#include "victim.h"

int main(void) {
  attempt("reboot", syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
                            LINUX_REBOOT_CMD_CAD_OFF, NULL));
  return conclude();
}
