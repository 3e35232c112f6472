// Ignores every signal and leaves copies that do too: its time limit must end all of them.
// victim: id=RES-17 sandbox=fresh verdict=wall_time timeout_ms=1500
#include <signal.h>

#include "victim.h"

int main(void) {
  if (!may_harm()) return not_tried("would leave processes behind that ignore signals");
  for (int number = 1; number < 65; ++number) signal(number, SIG_IGN);
  for (int i = 0; i < 4; ++i) {
    if (fork() != 0) continue;
    setsid();
    if (fork() != 0) _exit(0);
    while (true) pause();
  }
  while (true) pause();
}
