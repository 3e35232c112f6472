// Starts threads until it may not: they count as processes.
// victim: id=RES-01 sandbox=fresh limits=pids:32 verdict=pids_limit
// instead=gvisor:pids_limit|stopped:refused_faster_than_the_agent_looks
#include <pthread.h>

#include "victim.h"

static void* wait_long(void* nothing) {
  sleep(20);
  return nothing;
}

int main(void) {
  if (!may_harm()) return not_tried("a thread bomb is not for a host");
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  for (int made = 0; made < 200; ++made) {
    pthread_t thread;
    int number = pthread_create(&thread, &attributes, wait_long, NULL);
    if (number == 0) continue;
    note("stopped after %d: %s", made, strerror(number));
    _exit(number == EAGAIN ? kStoppedByLimit : kUnjudged);
  }
  broke("200 threads");
  _exit(kBrokeThrough);
}
