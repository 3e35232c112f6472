// The jail: namespaces, cgroups and an overlay root on the shared kernel, built by the warden.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "egress/policy.h"
#include "isolate/driver.h"
#include "isolate/warden_client.h"

namespace atl::isolate {

class JailDriver final : public Driver {
 public:
  // `run_directory` holds warden.sock and agents/.
  JailDriver(boost::asio::any_io_executor executor, std::string run_directory,
             const PeerWatch& warden);

  std::string_view name() const override { return "jail"; }
  Task<Result<uint32_t>> probe() override;
  Task<Result<void>> launch(LaunchSpec spec) override;
  Task<Result<void>> remove(SandboxId id) override;
  Task<Result<void>> change_limits(SandboxId id, WallLimits limits) override;
  Task<Result<void>> set_programs(SandboxId id, Programs programs) override;
  Task<Result<std::vector<SandboxId>>> list() override;
  Task<Result<std::string>> receipt(SandboxId id) override;
  Task<Result<linux::ResourceUsage>> usage(SandboxId id) override;
  Task<Result<void>> remove_image(Digest image) override;
  Task<Result<void>> set_network(SandboxId id, uint64_t tenant, std::string policy) override;
  Task<Result<EgressPage>> read_egress(SandboxId id, uint64_t offset) override;
  Task<Result<AgentSocket>> connect_agent(SandboxId id) override;
  Task<Result<std::string>> call_egress(EgressCall call) override;

  EgressClient& egress() { return egress_; }

 private:
  // Of Driver, as all of the above.
  Task<Result<void>> vacate(SandboxId id) override;
  Task<Result<void>> release(SandboxId id) override;
  Task<Result<Cut>> cut(SandboxId id, SnapshotId snapshot, uint64_t inherited_bytes) override;
  Task<Result<void>> remove_snapshot(SnapshotId snapshot) override;
  Task<Result<std::vector<SnapshotId>>> list_snapshots() override;
  Task<Result<std::string>> sign_manifest(Digest manifest) override;
  Task<Result<void>> create_volume(VolumeId volume, uint64_t limit_bytes) override;
  Task<Result<void>> remove_volume(VolumeId volume) override;
  Task<Result<std::vector<VolumeId>>> list_volumes() override;
  Task<Result<void>> set_aside(Found found) override;
  Task<Result<void>> sweep_lost_found() override;

  // Without what it has of egress.
  Task<Result<warden::Reply>> end(SandboxId id, LayerEnd layer_end);
  Task<Result<EgressClient::Sockets>> reopen_sockets(SandboxId id);
  Task<Result<void>> open_ranges(SandboxId id, std::vector<egress::Cidr> ranges);

  boost::asio::any_io_executor executor_;
  std::string run_directory_;
  WardenClient warden_;
  EgressClient egress_;
  std::map<SandboxId, std::vector<egress::Cidr>> open_ranges_;  // of those that have any
};

}  // namespace atl::isolate
