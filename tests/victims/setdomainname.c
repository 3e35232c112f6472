// Sets the domain name, to what it is.
// victim: id=ESC-28
#include "victim.h"

int main(void) {
  char name[65] = "";
  if (getdomainname(name, sizeof name - 1) != 0) return not_tried("getdomainname");
  attempt("setdomainname", setdomainname(name, strlen(name)));
  return conclude();
}
