// Opens the program that runs as process 1 for writing, through /proc.
// victim: id=ESC-09
#include "victim.h"

int main(void) {
  attempt_open("/proc/1/exe", O_WRONLY);
  attempt_open("/proc/1/exe", O_RDWR | O_TRUNC);
  return conclude();
}
