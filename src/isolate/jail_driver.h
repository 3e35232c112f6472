// The jail: namespaces, cgroups and an overlay root on the shared kernel, built by the warden.
#pragma once

#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "isolate/driver.h"
#include "isolate/warden_client.h"

namespace atl::isolate {

class JailDriver final : public Driver {
 public:
  // `run_directory` holds warden.sock and agents/.
  JailDriver(boost::asio::any_io_executor executor, std::string run_directory);

  std::string_view name() const override { return "jail"; }
  Task<Result<uint32_t>> probe() override;
  Task<Result<void>> launch(LaunchSpec spec) override;
  Task<Result<void>> remove(SandboxId id) override;
  Task<Result<void>> change_limits(SandboxId id, WallLimits limits) override;
  Task<Result<std::vector<SandboxId>>> list() override;
  Task<Result<std::string>> receipt(SandboxId id) override;
  Task<Result<void>> remove_image(Digest image) override;
  Task<Result<AgentSocket>> connect_agent(SandboxId id) override;

 private:
  boost::asio::any_io_executor executor_;
  std::string run_directory_;
  WardenClient warden_;
};

}  // namespace atl::isolate
