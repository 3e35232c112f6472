// Executes a program from memory: it may run, but with the same walls.
// victim: id=ESC-33
// not_behind=gvisor:its_/proc_does_not_tell_of_no_new_privs
#include <sys/mman.h>
#include <sys/sendfile.h>

#include "victim.h"

int main(int count, char** values) {
  if (count > 1) {
    bool walled = file_contains("/proc/self/status", "Seccomp:\t2") &&
                  file_contains("/proc/self/status", "NoNewPrivs:\t1");
    return walled ? kHeld : kBrokeThrough;
  }
  int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  int memory = memfd_create("program", 0);
  if (memory < 0 || sendfile(memory, self, NULL, 64 << 20) <= 0)
    return not_tried("memfd: %s", strerror(errno));
  pid_t child = fork();
  if (child == 0) {
    char* arguments[] = {values[0], "memory_program", "audit", NULL};
    char* environment[] = {NULL};
    syscall(SYS_execveat, memory, "", arguments, environment, AT_EMPTY_PATH);
    _exit(kHeld);
  }
  if (wait_for(child) != kHeld) broke("a program from memory has no filter");
  return conclude();
}
