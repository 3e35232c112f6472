// Host: the processes of one Atoll as its directories show them, and the way to end them. Shared by
// the supervisor when it is asked to stop and by `atoll down` when there is no supervisor left.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/places.h"
#include "cli/process.h"
#include "linux/lock_file.h"

namespace atl::cli {

// Where atoll-warden, atolld and atoll-agent stand: beside this program.
Result<std::string> find_binaries();

inline std::string builder_lock(const Places& places) { return places.run + "/builder.lock"; }

// Whose heartbeat is in the run directory (linux/heartbeat.h).
inline constexpr const char* kSupervisorName = "supervisor";

class Host {
 public:
  Host(Places places, std::string binaries, Identity daemon)
      : places_(std::move(places)), binaries_(std::move(binaries)), daemon_(daemon) {}

  Result<std::optional<linux::LockHolder>> supervisor() const;
  Result<std::optional<linux::LockHolder>> daemon() const;
  Result<std::optional<linux::LockHolder>> warden() const;
  Result<std::optional<linux::LockHolder>> builder() const;
  Result<std::optional<linux::LockHolder>> egress() const;

  // Ends atolld, egress, the builder and the warden if they still run, in this order: nobody may
  // ask for a sandbox while the last ones go. Gives the names of what was ended.
  Result<std::vector<std::string>> end_processes() const;

  // Lets a one-shot warden remove every isolate, mount, cgroup and loop device, then removes the
  // run directory. Both processes must have ended. False when there was nothing.
  Result<bool> remove_remains() const;

 private:
  Result<void> remove_isolates() const;

  Places places_;
  std::string binaries_;
  Identity daemon_;
};

}  // namespace atl::cli
