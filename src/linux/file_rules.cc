#include "linux/file_rules.h"

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace atl::linux {

Result<int> landlock_abi() {
  long abi = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi >= 0) return static_cast<int>(abi);
  if (errno == ENOSYS || errno == EOPNOTSUPP) return 0;
  return Error::system("ask for the landlock abi");
}

bool has_landlock() {
  auto abi = landlock_abi();
  return abi && *abi > 0;
}

uint64_t file_rights(int abi) {
  // How many there are in each ABI, from 0 on; each new one got the next bit.
  constexpr int kCounts[] = {0, 13, 14, 15, 15, 16};
  constexpr int kLast = static_cast<int>(std::size(kCounts)) - 1;
  return (1ull << kCounts[abi < kLast ? abi : kLast]) - 1;
}

Result<Fd> make_file_rules(uint64_t handled) {
  landlock_ruleset_attr attributes = {};
  attributes.handled_access_fs = handled;
  Fd rules(static_cast<int>(
      syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes.handled_access_fs, 0)));
  if (!rules) return Error::system("landlock_create_ruleset");
  return rules;
}

Result<void> allow_beneath(int rules, int directory, uint64_t rights) {
  landlock_path_beneath_attr attributes = {};
  attributes.allowed_access = rights;
  attributes.parent_fd = directory;
  if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &attributes, 0) != 0)
    return Error::system("landlock_add_rule");
  return {};
}

Result<void> take_file_rules(int rules) {
  if (syscall(SYS_landlock_restrict_self, rules, 0) != 0)
    return Error::system("landlock_restrict_self");
  return {};
}

}  // namespace atl::linux
