// Finds and signals the canary process of the host by its number.
// victim: id=ESC-18
#include <signal.h>

#include "victim.h"

int main(void) {
  const char* text = told("CANARY_PID");
  const char* name = told("CANARY_NAME");
  if (text == NULL || name == NULL) return not_tried("nobody told about a canary process");
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/comm", text);
  if (file_contains(path, name)) broke("%s shows the canary process", path);
  pid_t pid = atoi(text);
  // In a pid namespace of its own the number is nobody's, or one of its own processes.
  if (kill(pid, 0) == 0 && file_contains(path, name)) broke("process %s can be signalled", text);
  return conclude();
}
