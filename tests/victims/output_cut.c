// Prints more than it may, where the rest is dropped: it must end by itself, its output cut.
// victim: id=RES-09 sandbox=fresh limits=output_bytes:65536
#include "victim.h"

int main(void) {
  static char line[4096];
  memset(line, 'x', sizeof line);
  for (int i = 0; i < 2048; ++i)
    if (write(1 + i % 2, line, sizeof line) < 0) return kUnjudged;
  return kHeld;
}
