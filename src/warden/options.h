// The command line of atoll-warden. Every option is required once, except those with a default;
// anything unknown is refused.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::warden {

enum class Mode : unsigned char { kServe, kRemoveAll };

struct Options {
  Mode mode = Mode::kServe;
  std::string state_dir;    // what survives a reboot: pool and images
  std::string run_dir;      // what does not: sockets, records, mount points
  uid_t client_uid = 0;     // the only user that may ask
  std::string agent;        // path of the atoll-agent program; not needed by --remove-all
  std::string sudo;         // path of the atoll-sudo program; not needed by --remove-all
  std::string notary;       // path of the atoll-notary program; not needed by --remove-all
  uint64_t pool_bytes = 0;  // 0: chosen from the free space
  // How far the kernel's memory may grow that no group is charged for before the one who makes it
  // grow is looked for; 0: chosen by the memory of the host.
  uint64_t kernel_memory_growth = 0;
};

inline constexpr std::string_view kUsage =
    "usage: atoll-warden [--remove-all] --state-dir DIR --run-dir DIR --client-uid UID --agent FILE"
    " --sudo FILE --notary FILE [--pool-bytes N] [--kernel-memory-growth N]";

Result<Options> parse_options(std::span<char* const> arguments);

}  // namespace atl::warden
