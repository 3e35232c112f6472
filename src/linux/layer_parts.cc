#include "linux/layer_parts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "linux/subvolume.h"

namespace atl::linux {
namespace {

// Names of marks that there were before have to stay known.
constexpr const char* kMarks[] = {"machine", "sentry"};

// Where the keeper of a machine has it, and what it may have beside it (microvm/machine.h).
constexpr const char* kDisk = "upper/disk";
constexpr uint64_t kBesideDiskBytes = 64ull << 20;

bool has(int layer, const std::string& name) {
  return faccessat(layer, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace

Result<void> make_layer_parts(int layer, const std::string& mark, LayerOrigin origin) {
  for (const char* other : kMarks)
    if (origin == LayerOrigin::kSnapshot && has(layer, other) != (mark == other))
      return Error::from_errno("files of another wall", EMEDIUMTYPE);
  for (const std::string& part : {std::string("upper"), std::string("work"), mark}) {
    if (part.empty() || mkdirat(layer, part.c_str(), 0755) == 0) continue;
    if (origin == LayerOrigin::kNew || errno != EEXIST) return Error::system("mkdir " + part);
  }
  return {};
}

Result<void> make_room_for_disk(int layer, uint64_t charged_bytes) {
  if (!has(layer, kMarks[0])) return {};
  struct stat disk;
  if (fstatat(layer, kDisk, &disk, AT_SYMLINK_NOFOLLOW) != 0) return Error::system("stat a disk");
  ATOLL_TRY(uint64_t limit_bytes, read_subvolume_limit(layer));
  uint64_t needed = charged_bytes + static_cast<uint64_t>(disk.st_size) + kBesideDiskBytes;
  return needed > limit_bytes ? set_subvolume_limit(layer, needed) : Result<void>();
}

}  // namespace atl::linux
