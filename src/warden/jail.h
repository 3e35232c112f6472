// The child side of a launch: the process that becomes the agent. It is born in its namespaces and
// cgroup with everything of the helper still open; run() builds the walls in the order they must be
// built, gives up what is left of its power, and executes the agent. Nothing after the clone may
// allocate what the helper must free: the two share only the socket and the progress page.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "linux/descriptors.h"
#include "linux/volume_mounts.h"
#include "warden/progress.h"

namespace atl::warden {

// Messages on the socket between the helper and the jail.
inline constexpr char kSpawnerIsHere = 'S';  // jail's spawner → helper, with its credentials
inline constexpr char kTrees = 'T';          // helper → jail, with the mounts: ids are mapped
// Helper → spawner: agent::kGateOpen.
// Messages from the jail to its spawner.
inline constexpr char kIdsMapped = 'M';
inline constexpr char kRootReady = 'R';  // with the network namespace
// Message from the midwife to the jail, with the network namespace, and to the helper, with the
// sockets in it.
inline constexpr char kNetworkIsHere = 'N';

enum class Spawner : unsigned char { kNone, kNeeded };
// What process 1 is: the agent itself, or the keeper of a machine or of gVisor's sentry that has
// the agent inside.
enum class Wall : unsigned char { kJail, kGvisor, kMicrovm };

struct JailPlan {
  Spawner spawner = Spawner::kNone;
  Wall wall = Wall::kJail;
  std::string host_name;
  unsigned pids = 0;        // the limit, which that of pending signals follows
  int sync = -1;            // to the helper
  int helper_end = -1;      // the helper's end of the same pair, to be closed here
  int network = -1;         // from the midwife
  int network_sender = -1;  // her end of the same pair, to be closed here
  int sockets_sender = -1;  // hers too, for the sockets in it, which go to the helper
  int agent_binary = -1;    // memfd
  int listener = -1;
  int cgroup = -1;
  int birth = -1;
  int probe = -1;
  std::array<int, 4> counters = {-1, -1, -1, -1};  // kMemoryEventsFd and on; -1: none
  uint32_t open_files = 0;
  const linux::VolumeMounts* volumes = nullptr;
  bool keeps_layer = false;
  Progress* progress = nullptr;
  Step fail_at = Step::kNone;  // tests only: fail when this step is reached
};

class Jail {
 public:
  explicit Jail(const JailPlan& plan) : plan_(plan) {}
  [[noreturn]] void run();

 private:
  struct JailStep {
    Step step;
    Result<void> (Jail::*call)();
  };
  static const JailStep kSteps[];

  Result<void> fork_spawner();
  Result<void> receive_trees();
  Result<void> become_root();
  Result<void> leave_the_host();
  Result<void> build_root();
  Result<void> mount_devices();
  Result<void> mount_proc_and_run();
  Result<void> mount_disks();
  Result<void> mask_kernel_files();
  Result<void> name_the_resolver();
  Result<void> mount_volumes();
  Result<void> pivot();
  Result<void> join_network();
  Result<void> listen_for_sudo();
  Result<void> tell_spawner(char message, std::span<const int> fds = {});
  Result<void> release_spawner();
  Result<void> confine();
  Result<void> execute_agent();

  [[noreturn]] void run_spawner(int parent_end);
  Result<void> prepare_spawner();
  Result<void> execute_spawner();
  // The descriptor sent along, if any.
  Result<Fd> expect(int socket, char wanted);
  Result<void> execute(std::span<const linux::Placement> places, int last, const char* role);

  JailPlan plan_;
  Fd image_, layer_, devices_, masks_, tools_, toolbox_, disk_, root_, proc_, run_atoll_, network_,
      sudo_, spawner_;
  std::vector<Fd> volumes_;
};

}  // namespace atl::warden
