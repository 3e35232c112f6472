// The parent side of a launch: builds what an isolate stands on, clones the jail into it, maps its
// ids, hands over its mounts and waits until the agent really executes. A launch that fails leaves
// nothing behind.
#pragma once

#include <sys/types.h>

#include <array>
#include <optional>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "linux/closed_network.h"
#include "warden/host.h"
#include "warden/inventory.h"
#include "warden/isolate_groups.h"
#include "warden/jail.h"
#include "warden/midwife.h"
#include "warden/progress.h"
#include "warden/protocol.h"

namespace atl::warden {

struct LaunchOutcome {
  Status status = Status::kOk;
  Step step = Step::kNone;  // where it failed
  int system_errno = 0;
  Refusal refusal = Refusal::kNone;                     // kRefused only
  std::array<uint32_t, kLastStep + 1> elapsed_us = {};  // spent in each step
};

// Tests only: the step that shall fail when it is reached, on whichever side it runs.
struct Fault {
  Step step = Step::kNone;
};

class Launch {
 public:
  // `request` has passed parse_request().
  Launch(const Host& host, const Request& request, Fault fault = {},
         const linux::VolumeMounts& volumes = {});
  LaunchOutcome run();
  // Those in the network of an isolate that was launched, for egress.
  linux::NetworkSockets take_sockets() { return std::move(sockets_); }

 private:
  struct LaunchStep {
    Step step;
    Result<void> (Launch::*call)();
  };
  static const LaunchStep kSteps[];

  Result<void> make_record();
  Result<void> take_uids();
  Result<void> find_pool();
  Result<void> make_layer();
  Result<void> find_image();
  Result<void> make_groups();
  Result<void> make_listener();
  Result<void> clone_jail();
  Result<void> await_jail();
  Result<void> map_ids();
  Result<void> send_trees();
  Result<void> place_spawner();
  Result<void> await_agent();
  Result<void> make_receipt();

  LaunchOutcome run_steps();
  LaunchOutcome failed(Step step, const Error& error) const;
  Result<Fd> make_birth_record() const;
  Result<Fd> clone_for_jail(const std::string& path, uint64_t attributes, int user_namespace) const;
  Result<Fd> clone_image(const Digest& image, int user_namespace) const;
  // The file of an image, for a machine to read as a disk.
  Result<Fd> clone_image_file(const Digest& image) const;
  Spawner spawner() const;
  Wall wall() const {
    if (!is_set(request_.monitor)) return Wall::kJail;
    return agent::is_sentry(request_.guest.kind) ? Wall::kGvisor : Wall::kMicrovm;
  }
  static bool is_set(const std::array<unsigned char, Digest::kBytes>& digest) {
    return digest != std::array<unsigned char, Digest::kBytes>{};
  }
  bool has_toolbox() const { return is_set(request_.toolbox); }
  // What it stands on.
  Digest root() const {
    return wall() == Wall::kJail ? image_ : Digest::from_bytes(request_.monitor);
  }

  const Host& host_;
  const Request& request_;
  const Fault fault_;
  const SandboxId id_;
  const Digest image_;
  const Digest toolbox_;
  const linux::VolumeMounts volumes_;
  std::optional<SharedProgress> progress_;
  std::optional<RecordLock> record_;
  uid_t first_uid_ = 0;
  IsolateGroups groups_;
  Fd listener_, sync_, probe_;
  Birth birth_;
  std::array<Fd, 3> lent_;  // to the jail until it is born
  Fd spawner_;              // pidfd
  linux::NetworkSockets sockets_;
};

}  // namespace atl::warden
