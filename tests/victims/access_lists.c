// Gives a file in memory an access list of 64 KiB, which is charged to nobody.
// victim: id=RES-02
#include <sys/mman.h>
#include <sys/xattr.h>

#include "victim.h"

enum { kVersion = 2, kUserObject = 1, kUser = 2, kGroupObject = 4, kMask = 16, kOther = 32 };
enum { kUsers = 8000 };

struct entry {
  uint16_t tag, rights;
  uint32_t id;
};
static struct {
  uint32_t version;
  struct entry entries[kUsers + 4];
} list = {.version = kVersion};

int main(void) {
  int count = 0;
  list.entries[count++] = (struct entry){kUserObject, 6, -1u};
  for (uint32_t id = 0; id < kUsers; ++id) list.entries[count++] = (struct entry){kUser, 4, id};
  list.entries[count++] = (struct entry){kGroupObject, 4, -1u};
  list.entries[count++] = (struct entry){kMask, 4, -1u};
  list.entries[count++] = (struct entry){kOther, 4, -1u};
  int fd = memfd_create("list", MFD_CLOEXEC);
  if (fd < 0) return not_tried("memfd_create: %s", strerror(errno));
  if (fsetxattr(fd, "system.posix_acl_access", &list, sizeof list, 0) == 0)
    broke("an access list of %zu bytes", sizeof list);
  note("fsetxattr: %s", strerror(errno));
  return conclude();
}
