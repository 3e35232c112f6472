// Asks for the handle of a file, the first half of opening by handle.
// victim: id=ESC-14
#include "victim.h"

int main(void) {
  struct {
    struct file_handle head;
    char bytes[128];
  } handle = {.head = {.handle_bytes = 128}};
  int mount_number;
  long result = syscall(SYS_name_to_handle_at, AT_FDCWD, "/proc", &handle.head, &mount_number, 0);
  attempt("name_to_handle_at", result < 0 && errno == EOPNOTSUPP ? 0 : result);
  return conclude();
}
