// Makes POSIX message queues until it may not.
// victim: id=RES-16
#include <mqueue.h>

#include "victim.h"

int main(void) {
  int made = 0;
  for (; made < 5000; ++made) {
    char name[32];
    snprintf(name, sizeof name, "/bomb%d", made);
    if (mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, NULL) < 0) break;
  }
  note("%d queues, then %s", made, strerror(errno));
  for (int i = 0; i < made; ++i) {
    char name[32];
    snprintf(name, sizeof name, "/bomb%d", i);
    mq_unlink(name);
  }
  if (made >= 5000) broke("5000 queues");
  return conclude();
}
