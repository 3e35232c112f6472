// Every call number with fixed strange arguments, each in a child: the host must not notice.
// victim: id=ESC-40 sandbox=fresh timeout_ms=120000
#include <signal.h>

#include "victim.h"

enum { kNumbers = 480, kRounds = 2 };

static void call(long number, unsigned seed) {
  static char page[4096];
  const long kStrange[] = {0, -1, (long)page, 1, 4096, 0x7fffffff, (long)0x8000000000000000ul, 3};
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = kStrange[(seed = seed * 1103515245u + 12345u) >> 16 & 7];
  alarm(1);
  syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  _exit(0);
}

int main(void) {
  if (!may_harm()) return not_tried("would make every system call with strange arguments");
  signal(SIGTERM, SIG_IGN);
  for (unsigned round = 0; round < kRounds; ++round) {
    for (long number = 0; number < kNumbers; ++number) {
      // With -1 these would end the others of this sandbox, which other victims try.
      if (number == SYS_kill || number == SYS_tkill || number == SYS_rt_sigqueueinfo) continue;
      pid_t child = fork();
      if (child == 0) call(number, (unsigned)number * 31 + round);
      if (child > 0) wait_for(child);
    }
  }
  return conclude();
}
