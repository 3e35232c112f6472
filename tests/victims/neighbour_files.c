// Looks for files of a neighbour in /dev/shm, /tmp and /run.
// victim: id=LAT-04
#include "neighbour.h"
#include "victim.h"

int main(void) {
  if (access(kNeighbourFile, F_OK) == 0) broke("%s is there", kNeighbourFile);
  if (access(kNeighbourTemporary, F_OK) == 0) broke("%s is there", kNeighbourTemporary);
  return conclude();
}
