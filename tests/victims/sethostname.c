// Sets the host name, to what it is.
// victim: id=ESC-28
#include "victim.h"

int main(void) {
  char name[65] = "";
  if (gethostname(name, sizeof name - 1) != 0) return not_tried("gethostname");
  attempt("sethostname", sethostname(name, strlen(name)));
  return conclude();
}
