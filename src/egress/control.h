// Control: the socket on which atolld, and nobody else, says which sandboxes there are and what
// they may reach. Gates outlive a connection: atolld may be replaced while sandboxes go on.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>

#include <boost/asio/generic/seq_packet_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/fd.h"
#include "egress/gate.h"
#include "egress/protocol.h"

namespace atl::egress {

class Control {
 public:
  Control(const Surroundings& surroundings, Fd listener, uid_t client_uid);

  // For the life of this process.
  Task<void> run();
  void close_all();

 private:
  Task<void> serve(Fd accepted);
  Reply answer(const Request& request, std::vector<Fd> fds);
  Result<void> open(const Request& request, std::vector<Fd> fds);
  Result<void> change(const Request& request);
  void suspend(const SandboxId& id);
  void close(const SandboxId& id);
  void forget_old_logs();
  Result<void> retain(const Request& request);
  Result<void> read(const Request& request, Reply& reply);
  Result<void> answer_text(const Request& request, Reply& reply);
  Result<void> put_secret(const Request& request, Reply& reply);

  Surroundings surroundings_;
  boost::asio::posix::stream_descriptor listener_;
  uid_t client_uid_;
  unsigned closed_since_sweep_ = 0;
  std::map<SandboxId, std::shared_ptr<Gate>> gates_;  // shared with their tasks
};

}  // namespace atl::egress
