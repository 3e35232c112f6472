// Attaches the System V shared memory of a neighbour by its key.
// victim: id=LAT-06
#include <sys/shm.h>

#include "neighbour.h"
#include "victim.h"

int main(void) {
  if (shmget(kNeighbourKey, 0, 0) >= 0) broke("the neighbour's shared memory is there");
  return conclude();
}
