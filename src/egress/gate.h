// Gate: the one way out of one sandbox. Holds the sockets in its network, its policy, its table of
// names and its audit log; decides, records, and knows the connections that are open.
//
// One thread. Its tasks share it and end when it is closed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/ids.h"
#include "egress/audit_file.h"
#include "egress/courtesy.h"
#include "egress/denial_tally.h"
#include "egress/effective_policy.h"
#include "egress/inspector.h"
#include "egress/name_table.h"
#include "egress/open_connections.h"
#include "egress/pending_changes.h"
#include "egress/pipe_pool.h"
#include "egress/policy.h"
#include "egress/refusal_count.h"
#include "egress/resolver.h"
#include "egress/spending.h"
#include "egress/upstream.h"
#include "linux/closed_network.h"

namespace atl::egress {

// What all gates share.
struct Surroundings {
  boost::asio::any_io_executor executor;
  int directory;  // where tables and logs are
  Resolver& resolver;
  PipePool& pipes;
  Courtesy& courtesy;
  Descriptors& descriptors;
  PendingChanges& changes;
  const Policy* ceiling = nullptr;     // nothing beyond it is allowed; null: no ceiling
  const Upstream* upstream = nullptr;  // through which all is dialled; null: none
  boost::asio::ssl::context* client_tls = nullptr;  // whom we believe, where TLS is inspected
  SecretStore* secrets = nullptr;
  AuditRetention retention = {};
};

class Gate : public std::enable_shared_from_this<Gate> {
 public:
  static Result<std::shared_ptr<Gate>> open(const Surroundings& surroundings, SandboxId id,
                                            uint64_t tenant, Policy policy);

  // Begins to serve. `sockets` in the order of linux::NetworkSocket.
  Result<void> serve(linux::NetworkSockets sockets);
  // Another policy; connections that it does not allow end at once. After an error nothing is
  // allowed.
  Result<void> change(uint64_t tenant, Policy policy);
  // Allows nothing until change().
  void deny();
  void close();
  bool closed() const { return closed_; }

  const EffectivePolicy& policy() const { return policy_; }
  uint64_t tenant() const { return tenant_; }
  // The addresses that may be dialled. kDenied with reason address_refused if none may be.
  Task<Result<std::vector<Address>>> resolve(HostName name, uint16_t port);

  // Written when it returns; denials that repeat are counted instead. An error means that what is
  // recorded must not happen.
  Result<void> record(const AuditRow& row);

  NameTable& names() { return names_; }
  Spending& spending() { return spending_; }
  Inspector& inspector() { return inspector_; }
  const Surroundings& surroundings() const { return surroundings_; }
  OpenConnections& connections() { return connections_; }

 private:
  struct Records {
    NameTable names;
    AuditFile audit;
    Spending spending;
  };
  Gate(const Surroundings& surroundings, SandboxId id, uint64_t tenant, Policy policy,
       Records records);

  struct Known {
    std::vector<Address> addresses;
    SteadyTime until;
  };
  using Descriptor = boost::asio::posix::stream_descriptor;

  void record_refusals(std::span<const unsigned char> datagram);
  void send_marker();
  void close_unserved();
  Task<void> read_refusals(std::shared_ptr<Gate> self);
  Task<void> flush_tally(std::shared_ptr<Gate> self);
  bool is_too_many(Fd& accepted);
  Task<void> accept_connections(std::shared_ptr<Gate> self, Descriptor& listener, bool is_dns);
  Task<void> answer_questions(std::shared_ptr<Gate> self, Descriptor& socket);

  Surroundings surroundings_;
  const SandboxId id_;
  uint64_t tenant_;
  EffectivePolicy policy_;
  NameTable names_;
  AuditFile audit_;
  Spending spending_;
  Inspector inspector_;  // after what it borrows
  DenialTally tally_;
  SystemClock clock_;
  std::vector<std::unique_ptr<Descriptor>> sockets_;
  boost::asio::steady_timer tally_timer_;
  bool tally_waits_ = false;
  RefusalCount refusals_;
  std::map<HostName, Known> known_;
  OpenConnections connections_;
  bool closed_ = false;
};

}  // namespace atl::egress
