// The spawner: where limits are in v1 cgroups, moving a process into them costs an RCU grace
// period, so one process is put there once and starts all programs. They are born with
// CLONE_PARENT, as children of the agent, which waits for them as for its own. For that the spawner
// must be a child of the agent.
//
// One request at a time over a SEQPACKET socket: a SpawnRequest with its descriptors, then a
// SpawnReply. File workers are started like programs.
#pragma once

#include <sys/types.h>

#include <span>
#include <string_view>

#include "agent/process_start.h"
#include "base/fd.h"
#include "base/result.h"

namespace atl::agent {

// The agent's side.
class Spawner {
 public:
  Spawner() = default;
  explicit Spawner(Fd socket) : socket_(std::move(socket)) {}

  // The program's number. `payload` is an encoded Start or FileRequest. An error names the
  // operation alone. After one of the socket ("spawner") the spawner is given up for good.
  Result<pid_t> start(Becomes becomes, std::string_view payload, const StartFds& fds);

  bool alive() const { return socket_.valid(); }
  int fd() const { return socket_.get(); }
  void give_up() { socket_.reset(); }

 private:
  Result<pid_t> exchange(Becomes becomes, std::span<const int> fds);
  Fd socket_;
};

// The spawner's side. Waits until the warden has put it into its groups; closes the gate.
Result<void> pass_gate(int gate);

// What every start needs and no request brings.
struct SpawnBasis {
  Fd file_rules;
  rlimit open_files;
};
Result<SpawnBasis> make_spawn_basis();
// Serves one request; false when the socket is closed.
Result<bool> serve_spawn(int socket, const SpawnBasis& basis);
// Serves until the socket closes, then returns.
Result<void> serve_spawns(int socket);

}  // namespace atl::agent
