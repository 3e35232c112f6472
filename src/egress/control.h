// Control: the socket on which atolld, and nobody else, says which sandboxes there are and what
// they may reach. Gates outlive a connection: atolld may be replaced while sandboxes go on. Only
// the newest connection is heard: what waits in one before it may be older than what is in force.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>

#include <boost/asio/generic/seq_packet_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/fd.h"
#include "egress/gate.h"
#include "egress/health.h"
#include "egress/protocol.h"

namespace atl::egress {

class Control {
 public:
  Control(const Surroundings& surroundings, Fd listener, uid_t client_uid);

  // For the life of this process.
  Task<void> run();
  // Ends connections of sandboxes that say nothing, for the life of this process.
  Task<void> end_idle();
  void close_all();

 private:
  struct Client;

  // Answers all that waits.
  void apply_pending();
  bool accept_client();
  Task<void> serve(std::shared_ptr<Client> client);
  // False: nothing waits any more, or the client does not take its answers.
  bool take_request(Client& client);
  bool send_reply(Client& client);
  void close_client();
  Reply answer(const Request& request, std::vector<Fd> fds);
  Result<void> open(const Request& request, std::vector<Fd> fds);
  Result<void> change(const Request& request);
  void suspend(const SandboxId& id);
  void close(const SandboxId& id);
  void forget_old_logs();
  Result<void> retain(const Request& request);
  Result<void> deny(const Request& request);
  Result<void> check_room() const;
  Health health() const;
  Result<void> read(const Request& request, Reply& reply);
  Result<void> answer_text(const Request& request, Reply& reply);
  Result<void> put_secret(const Request& request, Reply& reply);

  Surroundings surroundings_;
  boost::asio::posix::stream_descriptor listener_;
  uid_t client_uid_;
  std::shared_ptr<Client> client_;  // shared with its task
  bool applies_ = false;
  std::string buffer_;
  unsigned closed_since_sweep_ = 0;
  uint64_t idle_ended_ = 0;
  std::map<SandboxId, std::shared_ptr<Gate>> gates_;  // shared with their tasks
};

}  // namespace atl::egress
