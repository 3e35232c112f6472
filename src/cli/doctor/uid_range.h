// The user and group ids that isolates run as, and who else on this host claims any of them. A host
// user with such an id could signal or read what is inside a sandbox.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "cli/doctor/finding.h"

namespace atl::cli {

// As in warden/uid_ranges.h, which this folder may not include; the system test compares the two.
inline constexpr uid_t kFirstUid = 0x40000000;
inline constexpr uint64_t kUidCount = uint64_t{8'192} * 65'536;

// The names that claim an id in the range, in the order of the text.
// /etc/passwd and /etc/group: name:x:ID:...
std::vector<std::string> find_claimed_ids(std::string_view text);
// /etc/subuid and /etc/subgid: name:FIRST:COUNT
std::vector<std::string> find_claimed_ranges(std::string_view text);

Findings probe_uid_range();

}  // namespace atl::cli
