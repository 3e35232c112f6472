// The root and working directory of process 1 and of the canary process on the host.
// victim: id=ESC-13
#include "victim.h"

static void look(const char* process, const char* entry, const char* canary) {
  char path[512];
  snprintf(path, sizeof path, "/proc/%s/%s%s", process, entry, canary);
  if (access(path, F_OK) == 0) broke("%s is there", path);
}

int main(void) {
  const char* canary = told("CANARY_FILE");
  const char* process = told("CANARY_PID");
  if (canary == NULL || process == NULL) return not_tried("nobody told about canaries");
  look("1", "root", canary);
  look("1", "cwd/../../../../../../..", canary);
  look("self", "root", canary);
  look(process, "root", canary);
  return conclude();
}
