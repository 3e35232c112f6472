// landlock(7): rules about what a process may do with files, beyond their permissions. A process
// that takes a set of rules keeps it for good, and so do its descendants. One set can be taken by
// many processes.
#pragma once

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

// Rights that file rules can speak of; the system's headers lack the last two.
inline constexpr uint64_t kMakeCharDevice = 1ull << 6;
inline constexpr uint64_t kMakeBlockDevice = 1ull << 11;
inline constexpr uint64_t kDeviceIoctl = 1ull << 15;

// 0: this kernel has no Landlock, or it is switched off.
Result<int> landlock_abi();

bool has_landlock();

// Every right that the ABI knows and we do.
uint64_t file_rights(int abi);

// A set that forbids `handled` everywhere.
Result<Fd> make_file_rules(uint64_t handled);
// ... but not `rights` beneath `directory` (O_PATH is enough).
Result<void> allow_beneath(int rules, int directory, uint64_t rights);
// Needs no_new_privs. Single-threaded callers only: it is the thread that takes them.
Result<void> take_file_rules(int rules);

}  // namespace atl::linux
