// Uid ranges: 65,536 ids for each isolate, so that no two isolates, also of different Atolls on
// this host, share a user: linux/uid_registry.h.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/ids.h"
#include "base/result.h"
#include "warden/host.h"

namespace atl::warden {

inline constexpr uid_t kFirstUid = 0x40000000;
inline constexpr uint32_t kUidsPerRange = 65'536;
inline constexpr uint32_t kUidRanges = 8'192;

// Takes a range, notes it in the isolate's record (an open directory) and gives its first uid.
Result<uid_t> take_uid_range(const Host& host, const SandboxId& id, int record);

// Frees the range noted in the record; none is a success.
Result<void> free_uid_range(const Host& host, const SandboxId& id, int record);

// Frees the ranges of isolates that exist no more, of any Atoll.
Result<void> free_stale_uid_ranges(const Host& host);
// Once no Atoll on this host has a range. A launch of another one that meets the gap fails and can
// be repeated.
Result<void> remove_empty_registry();

}  // namespace atl::warden
