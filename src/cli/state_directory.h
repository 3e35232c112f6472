// The directories of an Atoll: who owns each and who may enter. Root owns what the kernel or the
// warden reads; the user `atoll` owns only its own corner.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/places.h"
#include "cli/process.h"

namespace atl::cli {

inline constexpr const char* kDaemonUser = "atoll";
inline constexpr const char* kEgressUser = "atoll-egress";

// The ids of kDaemonUser; kNotFound says how to make it.
Result<Identity> find_daemon_identity();

// The same for kEgressUser, which must be another.
Result<Identity> find_egress_identity();

// Makes what is missing and sets owner and mode of everything below the state directory. Refuses a
// state directory that others could change, or that `daemon` could not reach.
Result<void> make_state_directories(const Places& places, const Identity& daemon);
// The run directory, once there is a state directory: only a running Atoll has one.
Result<void> make_run_directories(const Places& places, const Identity& daemon);

// The two directories of egress, once there are the others.
Result<void> make_egress_directories(const Places& places, const Identity& egress,
                                     const Identity& daemon);

// Removes a directory tree. Follows no link and leaves no file system: a mount beneath is an error.
// An absent directory is a success.
Result<void> remove_tree(const std::string& path);

}  // namespace atl::cli
