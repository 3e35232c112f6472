// A program whose interpreter is /proc/self/exe makes the one who starts it execute itself inside.
// Whatever it answers, the programs of the host must stay as they were.
// victim: id=ESC-09 command=/victims/self-exe verdict=any sandbox=fresh timeout_ms=5000
// instead=gvisor:any|signal:its_kernel_ends_the_program
#include "victim.h"

int main(void) { return not_tried("this victim is started by its script"); }
