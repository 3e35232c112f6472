// Asks for line disciplines that the kernel loads from a module.
// victim: id=ESC-25
#include <sys/ioctl.h>
#include <termios.h>

#include "victim.h"

int main(void) {
  int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return not_tried("/dev/ptmx: %s", strerror(errno));
  static const int kDisciplines[] = {2, 3, 13, 15, 21};  // mouse, ppp, hdlc, bluetooth, gsm
  for (size_t i = 0; i < sizeof kDisciplines / sizeof kDisciplines[0]; ++i)
    if (ioctl(fd, TIOCSETD, &kDisciplines[i]) == 0) broke("discipline %d", kDisciplines[i]);
  return conclude();
}
