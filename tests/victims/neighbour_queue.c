// Opens the POSIX message queue of a neighbour.
// victim: id=LAT-06
#include <mqueue.h>

#include "neighbour.h"
#include "victim.h"

int main(void) {
  if (mq_open(kNeighbourQueue, O_RDWR) >= 0) broke("the neighbour's queue is there");
  return conclude();
}
