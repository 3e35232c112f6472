// Asks for the mounts by number, which could show those of another namespace.
// victim: id=ESC-12
#include "victim.h"

enum { kStatmount = 457, kListmount = 458 };

int main(void) {
  struct {
    uint32_t size, spare;
    uint64_t mount, parameter, namespace;
  } request = {.size = sizeof request, .mount = UINT64_MAX};
  uint64_t mounts[64];
  attempt("listmount", syscall(kListmount, &request, mounts, 64, 0));
  struct statx_stub {
    char bytes[4096];
  } answer;
  request.mount = 1ull << 31;
  request.parameter = 1;
  long result = syscall(kStatmount, &request, &answer, sizeof answer, 0);
  // A number that names no mount of ours is answered with ENOENT by a kernel that was reached.
  attempt("statmount", result < 0 && errno == ENOENT ? 0 : result);
  return conclude();
}
