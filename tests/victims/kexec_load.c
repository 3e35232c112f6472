// Stages another kernel; no segments would take the staged one away.
// victim: id=ESC-26
#include "victim.h"

int main(void) {
  attempt("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
  attempt("kexec_file_load", syscall(SYS_kexec_file_load, -1, -1, 0, "", 4));
  return conclude();
}
