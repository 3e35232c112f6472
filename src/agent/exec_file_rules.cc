#include "agent/exec_file_rules.h"

#include <fcntl.h>

#include "base/file.h"
#include "linux/file_rules.h"

namespace atl::agent {

Result<Fd> make_exec_file_rules(Landlock landlock) {
  ATOLL_TRY(int abi, linux::landlock_abi());
  if (abi == 0 && landlock == Landlock::kWhereThereIs) return Fd();
  if (abi == 0) return Error(Code::kUnsupported, "this kernel has no landlock", EOPNOTSUPP);
  uint64_t all = linux::file_rights(abi);
  uint64_t nowhere = linux::kMakeCharDevice | linux::kMakeBlockDevice;
  ATOLL_TRY(Fd rules, linux::make_file_rules(all));
  ATOLL_TRY(Fd root, open_file("/", O_PATH | O_DIRECTORY));
  ATOLL_TRY_VOID(
      linux::allow_beneath(rules.get(), root.get(), all & ~nowhere & ~linux::kDeviceIoctl));
  if ((all & linux::kDeviceIoctl) == 0) return rules;
  ATOLL_TRY(Fd devices, open_file("/dev", O_PATH | O_DIRECTORY));
  ATOLL_TRY_VOID(linux::allow_beneath(rules.get(), devices.get(), linux::kDeviceIoctl));
  return rules;
}

}  // namespace atl::agent
