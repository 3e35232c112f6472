// atoll-agent            process 1 of a sandbox, started by the warden; see protocol.h
// atoll-agent spawner    its helper where limits are in v1 cgroups; descriptor 3 is the agent's
// socket
// atoll-agent keeper     process 1 of a jail in which a machine runs, with the agent in that
// atoll-agent sentry-keeper, sentry, sentry-guest, sentry-guest-copy    process 1 of a jail in
//                        which gVisor runs, what becomes gVisor's sentry, and process 1 inside of
//                        that, which executes a copy of itself, the agent
// /init                  the first process of that machine, which starts the agent there
#include <malloc.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/spawner.h"
#include "base/file.h"
#include "gvisor/guest.h"
#include "gvisor/keeper.h"
#include "gvisor/sentry.h"
#include "microvm/guest.h"
#include "microvm/keeper.h"

namespace atl::agent {
namespace {

Result<void> run_spawner() {
  ATOLL_TRY_VOID(pass_gate(kSpawnersGateFd));
  ATOLL_TRY_VOID(harden_process(kSpawnersSocketFd));
  return serve_spawns(kSpawnersSocketFd);
}

Result<void> run_agent() {
  ATOLL_TRY(Birth birth, take_birth());
  ATOLL_TRY(Agent agent, Agent::create(std::move(birth)));
  return agent.run();
}

Result<void> run(std::string_view mode) {
  if (mode == "spawner") return run_spawner();
  if (mode == kKeeperRole) return microvm::run_keeper();
  if (mode == kSentryKeeperRole) return gvisor::run_keeper();
  if (mode == gvisor::kSentryRole) return gvisor::run_sentry();
  if (mode == gvisor::kGuestRole) return gvisor::execute_copy();
  if (mode == gvisor::kGuestCopyRole) ATOLL_TRY_VOID(gvisor::become_agent());
  return run_agent();
}

}  // namespace
}  // namespace atl::agent

int main(int argc, char** argv) {
  // Windows and requests beyond this size go back to the kernel when they are freed: idle agents
  // are many.
  mallopt(M_MMAP_THRESHOLD, 32 * 1024);
  mallopt(M_TRIM_THRESHOLD, 64 * 1024);
  // The kernel may have arguments of its own for it.
  if (argc > 0 && argv[0] == std::string_view(atl::microvm::kGuestProgram))
    atl::microvm::run_guest();
  auto ended = atl::agent::run(argc == 2 ? argv[1] : "");
  if (ended.ok()) _exit(0);
  std::string line = "atoll-agent: " + ended.error().message() + "\n";
  // There is no other place to say it.
  (void)atl::write_all(STDERR_FILENO, line);
  _exit(1);
}
