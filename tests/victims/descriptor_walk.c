// Walks up from every descriptor and from /proc/self/cwd to the canary of the host.
// victim: id=ESC-10
#include "victim.h"

int main(void) {
  const char* canary = told("CANARY_FILE");
  if (canary == NULL) return not_tried("nobody told about a canary file");
  for (int fd = 0; fd < 64; ++fd) {
    char path[512];
    snprintf(path, sizeof path, "/proc/self/fd/%d/../../../../../../..%s", fd, canary);
    if (access(path, F_OK) == 0) broke("%s is there", path);
    snprintf(path, sizeof path, "../../../../../../../..%s", canary);
    int found = faccessat(fd, path, F_OK, 0);
    if (found == 0) broke("the canary is above descriptor %d", fd);
  }
  return conclude();
}
