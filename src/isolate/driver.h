// The seam: a driver builds the wall around a sandbox and hands over the agent stream; all that
// happens inside goes through the agent, whatever the wall.
//
// All operations belong to the io_context thread and may be called for several sandboxes at once.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/local/stream_protocol.hpp>

#include "agent/protocol.h"
#include "async/task.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/snapshot_id.h"
#include "isolate/egress_client.h"
#include "isolate/lost_found.h"
#include "isolate/meter.h"
#include "isolate/monitor.h"
#include "isolate/snapshot_keeper.h"
#include "isolate/volume_keeper.h"
#include "isolate/wall_limits.h"

namespace atl::isolate {

using AgentSocket = boost::asio::local::stream_protocol::socket;
using Nonce = std::array<unsigned char, agent::kNonceBytes>;

// How long the files of an isolate are there. kKept: until remove(), also when the machine ends; a
// launch of the same id finds them again, and not those of a snapshot.
enum class LayerEnd : unsigned char { kWithIsolate, kKept };

// kLender: a machine that others will begin with the memory of, and that no sandbox becomes.
enum class Purpose : unsigned char { kSandbox, kLender };

struct LaunchSpec {
  SandboxId id;
  Digest image;
  WallLimits limits;
  Nonce nonce;  // the agent repeats it in its hello, which proves who answers
  std::optional<Digest> toolbox = {};       // the image that it shall have at /opt/atoll
  std::optional<SnapshotId> snapshot = {};  // whose files it begins with
  // It is behind this, which has the image and the toolbox as disks.
  std::optional<Monitor> monitor = {};
  std::vector<VolumePlace> volumes = {};  // at most kMaxVolumes
  LayerEnd layer_end = LayerEnd::kWithIsolate;
  Purpose purpose = Purpose::kSandbox;
};

enum class Programs : unsigned char { kRun, kFrozen };

class Driver : public SnapshotKeeper, public VolumeKeeper, public LostFound, public Meter {
 public:
  virtual std::string_view name() const = 0;

  // Usable on this host? The error says why not. Gives the bits of each Extra that it has here.
  virtual Task<Result<uint32_t>> probe() = 0;
  virtual Task<Result<void>> launch(LaunchSpec spec) = 0;
  // Ends the isolate and frees all it held. Removing one that does not exist succeeds.
  virtual Task<Result<void>> remove(SandboxId id) = 0;
  // The same, to launch another under its id, which goes on with what its network has spent.
  virtual Task<Result<void>> vacate(SandboxId id) = 0;
  // The same, but its files stay too, as those of kKept do, on disk when this returns. Can be
  // repeated. kNotFound: there are none.
  virtual Task<Result<void>> release(SandboxId id) = 0;
  // Gives the isolate other limits, all that can change while it runs: cpu, memory, pids, disk and
  // its rate. After a refusal it has those it had. kConflict with reason memory_in_use: it uses
  // more memory than that.
  virtual Task<Result<void>> change_limits(SandboxId id, WallLimits limits) = 0;
  // Stops all that runs inside, and what is started from then on, or lets it go on; its agent
  // answers all the time. Can be repeated.
  virtual Task<Result<void>> set_programs(SandboxId id, Programs programs) = 0;
  // Every isolate that exists, also those of an earlier life of this process.
  virtual Task<Result<std::vector<SandboxId>>> list() = 0;
  // What is enforced for an isolate, as signed JSON text. kNotFound when it does not exist.
  virtual Task<Result<std::string>> receipt(SandboxId id) = 0;
  // Forgets an image that no isolate is started from any more; nothing is a success.
  virtual Task<Result<void>> remove_image(Digest image) = 0;
  // What the isolate may reach, as the JSON of egress/policy_json.h; before, nothing.
  virtual Task<Result<void>> set_network(SandboxId id, uint64_t tenant, std::string policy) = 0;
  // Rows of its audit log from an offset that an earlier page gave, or 0.
  virtual Task<Result<EgressPage>> read_egress(SandboxId id, uint64_t offset) = 0;
  // What is asked of egress besides. kUnsupported with reason no_egress: there is none.
  virtual Task<Result<std::string>> call_egress(EgressCall call) = 0;
  // A fresh agent stream. kNotFound when the agent is gone for good.
  virtual Task<Result<AgentSocket>> connect_agent(SandboxId id) = 0;
};

}  // namespace atl::isolate
