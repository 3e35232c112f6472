// Types into its terminal as if the user had: TIOCSTI, and its relatives.
// victim: id=ESC-32
#include <sys/ioctl.h>
#include <termios.h>

#include "victim.h"

static int terminal;
static long type(void) {
  setsid();
  if (ioctl(terminal, TIOCSCTTY, 0) != 0) return -1;
  return ioctl(terminal, TIOCSTI, "x");
}
static long console(void) { return ioctl(terminal, TIOCCONS, NULL); }

int main(void) {
  int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  int unlock = 0;
  if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) != 0)
    return not_tried("/dev/ptmx: %s", strerror(errno));
  terminal = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
  if (terminal < 0) return not_tried("TIOCGPTPEER: %s", strerror(errno));
  attempt_in_child("TIOCSTI", type);
  attempt_in_child("TIOCCONS", console);
  attempt_open("/dev/tty0", O_RDWR);
  return conclude();
}
