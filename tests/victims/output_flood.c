// Prints more than it may, where that ends the program.
// victim: id=RES-09 sandbox=fresh limits=output_bytes:1048576 exec=on_output_limit:kill
// verdict=output_limit
#include "victim.h"

int main(void) {
  static char line[4096];
  memset(line, 'x', sizeof line);
  for (int i = 0; i < 4096; ++i)
    if (write(1, line, sizeof line) < 0) return kUnjudged;
  return kBrokeThrough;
}
