// FakeDriver: isolates without walls, for tests of sandbox/ and api/ and for fuzzing the request
// path. Its agents live in this process and speak the real agent protocol over a real socket pair.
// They know a few programs: `echo words…` (stdout), `warn words…` (stderr), `exit N`, `spam N` (N
// bytes of a known pattern), `hang words…` (prints them and runs until signalled or its agent
// dies), `end CAUSE exit|signal N [LIMIT…]` (prints `partial` on both streams, then ends in that
// way having touched those limits; `sandbox_peak` among them gives its peak of memory that scope),
// `limits` (prints those of its start frame), `cat` (copies its input, and the size that its
// terminal gets, to stdout until its input ends), `stubborn` (never reads), `late` (reads nothing
// until SIGCONT, then as cat); anything else ends with 127. An interpreter of a context is a
// FakeInterpreter, whatever its language.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "isolate/driver.h"
#include "isolate/fake_exec.h"
#include "isolate/fake_files.h"

namespace atl::isolate {

class FakeDriver final : public Driver {
 public:
  // The agents run on `executor`, which may outlive that of the callers.
  explicit FakeDriver(boost::asio::any_io_executor executor);
  ~FakeDriver() override;

  std::string_view name() const override { return "fake"; }
  Task<Result<uint32_t>> probe() override;
  Task<Result<void>> launch(LaunchSpec spec) override;
  Task<Result<void>> remove(SandboxId id) override;
  Task<Result<void>> change_limits(SandboxId id, WallLimits limits) override;
  Task<Result<std::vector<SandboxId>>> list() override;
  Task<Result<std::string>> receipt(SandboxId id) override;
  Task<Result<AgentSocket>> connect_agent(SandboxId id) override;

  // The next launch, or every remove until told otherwise, fails like this.
  std::optional<Error> next_launch_error;
  // Before an isolate is there.
  std::chrono::milliseconds launch_time{0};
  std::optional<Error> remove_error;
  // As kill -9 of an agent: its stream breaks and nobody answers a new connection.
  void kill_agent(SandboxId id);
  // The stream breaks; the agent and its execs go on.
  void drop_stream(SandboxId id);
  // What an isolate has now.
  const WallLimits& limits(SandboxId id) const;
  // The agent no longer knows any of its execs, and says so in its next hello.
  void forget_execs(SandboxId id);
  FakeFiles& files(SandboxId id);
  // As the end of the machine: no isolate is left, and of files those that are kept.
  void lose_power();
  // Sends raw bytes as if the agent had, to play a hostile one.
  void inject(SandboxId id, std::string bytes);

  // What isolates are said to use; nothing, unless it is here.
  std::map<SandboxId, linux::ResourceUsage> used;

  // What agents say in their hello, and expect in the welcome, from the next connection on.
  uint16_t spoken_version = agent::kProtocolVersion;
  // What comes instead of a hello, unless it is empty.
  std::string farewell;
  // Of those that were launched with one.
  std::map<SandboxId, Digest> toolboxes;
  std::set<SandboxId> machines;  // that were launched with a monitor
  // What those say that depend on the host: machines with its processor, sentries by their way to
  // take hold of system calls. One that hangs says nothing.
  enum class Trial : unsigned char { kWorks, kHangs, kEnds };
  Trial hardware = Trial::kWorks;
  Trial systrap = Trial::kWorks;
  Trial ptrace = Trial::kWorks;
  // How the next changes of limits fail, without changing anything.
  std::deque<Error> limit_change_errors;
  // How the next freezes and thaws fail, without doing anything; and what is frozen.
  std::deque<Error> freeze_errors;
  std::set<SandboxId> frozen;
  size_t freezes_and_thaws = 0;  // that were asked for
  // What was kept, by snapshot.
  std::map<SnapshotId, FakeFiles> snapshots;
  // The limits of the volumes that there are, and what isolates were launched with.
  std::map<VolumeId, uint64_t> volumes;
  std::map<SandboxId, std::vector<VolumePlace>> places;
  // The files of isolates that are kept, once those are gone.
  std::map<SandboxId, FakeFiles> kept;
  // Ids of what was set aside.
  std::set<std::string> aside;

 private:
  // Of Driver; nobody asks the fake itself.
  Task<Result<linux::ResourceUsage>> usage(SandboxId id) override;
  Task<Result<void>> vacate(SandboxId id) override;
  Task<Result<void>> release(SandboxId id) override;
  Task<Result<void>> set_aside(Found found) override;
  Task<Result<void>> sweep_lost_found() override;
  Task<Result<void>> remove_image(Digest image) override;
  Trial trial_of(const Monitor& monitor) const;
  Task<Result<void>> set_programs(SandboxId id, Programs programs) override;
  Task<Result<Cut>> cut(SandboxId id, SnapshotId snapshot, uint64_t inherited_bytes) override;
  Task<Result<void>> remove_snapshot(SnapshotId snapshot) override;
  Task<Result<std::vector<SnapshotId>>> list_snapshots() override;
  Task<Result<std::string>> sign_manifest(Digest manifest) override;
  Task<Result<void>> create_volume(VolumeId volume, uint64_t limit_bytes) override;
  Task<Result<void>> remove_volume(VolumeId volume) override;
  Task<Result<std::vector<VolumeId>>> list_volumes() override;
  Task<Result<void>> set_network(SandboxId id, uint64_t tenant, std::string policy) override;
  Task<Result<EgressPage>> read_egress(SandboxId id, uint64_t offset) override;
  Task<Result<std::string>> call_egress(EgressCall call) override;

  struct Agent;
  boost::asio::any_io_executor executor_;
  std::map<SandboxId, std::string> networks_;
  std::map<SandboxId, std::shared_ptr<Agent>> agents_;  // shared with the agent's serving task
};

}  // namespace atl::isolate
