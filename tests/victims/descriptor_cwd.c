// Starts with a working directory that is a descriptor of whoever starts it: CVE-2024-21626.
// victim: id=ESC-10 cwd=/proc/self/fd/7 verdict=any
#include "victim.h"

int main(void) {
  const char* canary = told("CANARY_FILE");
  if (canary == NULL) return not_tried("nobody told about a canary file");
  char path[512];
  snprintf(path, sizeof path, "../../../../../../../..%s", canary);
  if (access(path, F_OK) == 0) broke("%s is there", path);
  return conclude();
}
