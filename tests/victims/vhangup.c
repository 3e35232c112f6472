// Hangs up its terminal for everybody.
// victim: id=ESC-26
#include "victim.h"

static long call(void) { return vhangup(); }

int main(void) {
  if (!may_harm()) return not_tried("would hang up the terminal");
  attempt_in_child("vhangup", call);
  return conclude();
}
