// Executes a copy of itself that the image gives every capability.
// victim: id=ESC-16 user=user
#include <sys/xattr.h>

#include "victim.h"

int main(int count, char** values) {
  (void)values;
  if (count > 1) return file_contains("/proc/self/status", "CapPrm:\t0000000000000000") ? 0 : 1;
  const char* path = "/victims/capable";
  char value[64];
  if (getxattr(path, "security.capability", value, sizeof value) <= 0)
    return not_tried("the image was built without root: %s has no capabilities", path);
  pid_t child = fork();
  if (child == 0) {
    execl(path, path, "file_capabilities", "audit", NULL);
    _exit(kHeld);
  }
  if (wait_for(child) != kHeld) broke("the file's capabilities were given");
  return conclude();
}
