// Rounds: what atolld stands on (the other processes, the database), looked at twice a second for
// api::Health. A question that is not answered is a trouble and never holds up the next round.
//
// One thread. Must outlive its run().
#pragma once

#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "api/health.h"
#include "isolate/peer_watch.h"
#include "sandbox/ledger.h"

namespace atl::daemon {

class Rounds {
 public:
  Rounds(boost::asio::any_io_executor executor, const std::string& run_directory,
         sandbox::Ledger& ledger, api::Health& health);

  // For the life of the process.
  Task<void> run();
  // For who calls it.
  const isolate::PeerWatch& warden() const { return warden_; }

 private:
  struct Question;
  static Task<void> ask_database(sandbox::Ledger& ledger, std::shared_ptr<Question> question);
  void look_at_database(std::chrono::milliseconds passed);

  boost::asio::any_io_executor executor_;
  isolate::PeerWatch warden_, builder_, egress_;
  sandbox::Ledger& ledger_;
  api::Health& health_;
  std::shared_ptr<Question> question_;  // shared with the task that asks it
};

}  // namespace atl::daemon
