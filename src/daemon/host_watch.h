// HostWatch: looks each second at what sandboxes stand on, the layer pool and the disk of the state
// directory, and reports it to Health. The daemon's own life, one thread.
#pragma once

#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "api/health.h"
#include "isolate/driver.h"
#include "sandbox/ledger.h"

namespace atl::daemon {

class HostWatch {
 public:
  HostWatch(api::Health& health, isolate::Driver& driver, sandbox::Ledger& ledger,
            std::string state_directory)
      : health_(health),
        driver_(driver),
        ledger_(ledger),
        state_directory_(std::move(state_directory)) {}

  // From now on; must outlive the context.
  void begin(boost::asio::any_io_executor executor);

 private:
  Task<void> run();
  void look_at_disk();
  // What is wrong with whoever answers is another's to report.
  Task<void> look_at_pool();

  api::Health& health_;
  isolate::Driver& driver_;
  sandbox::Ledger& ledger_;
  const std::string state_directory_;
};

}  // namespace atl::daemon
