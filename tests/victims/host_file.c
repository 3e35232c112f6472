// Reads the canary of the host by its path, plainly, through ".." and through links of the image.
// victim: id=ESC-13
#include "victim.h"

int main(void) {
  const char* canary = told("CANARY_FILE");
  if (canary == NULL) return not_tried("nobody told about a canary file");
  static const char* const kPrefixes[] = {"", "/../../../../../..", "/victims/up",
                                          "/victims/host-proc", "/proc/self/cwd/../../../.."};
  for (size_t i = 0; i < sizeof kPrefixes / sizeof kPrefixes[0]; ++i) {
    char path[512];
    snprintf(path, sizeof path, "%s%s", kPrefixes[i], canary);
    if (access(path, F_OK) == 0) broke("%s is there", path);
  }
  return conclude();
}
