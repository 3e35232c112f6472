// RequestGuard: the requests of one connection on their way out. Each must be for the name that the
// connection is for (RequestStream); on a connection that is inspected each is also decided by
// itself and has a row in the audit log before it goes on. All are paid for. Placeholders of the
// sandbox's secrets are replaced where they may be, and are refused anywhere else; fields that the
// policy sets are written.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "egress/gate.h"
#include "egress/purse.h"
#include "egress/request_stream.h"

namespace atl::egress {

class RequestGuard {
 public:
  struct Connection {
    Destination to;
    uint16_t port;
    Purse& purse;  // of the connection; outlives this
    AuditRow row;  // what is known of it, for rows about its requests
    bool is_inspected = false;
    Inspector::Transport transport = Inspector::Transport::kPlain;
  };
  RequestGuard(Gate& gate, Connection connection);

  struct Passed {
    size_t taken = 0;                         // 0: the head is not complete
    std::optional<std::string> instead = {};  // what goes on in the place of these bytes
  };
  // Looks at the beginning of `bytes`, which follow those that were taken. An error ends the
  // connection; its reason is one of a fixed list, and its field a budget that is used up.
  Result<Passed> pass(std::string_view bytes);

  uint64_t requests() const { return stream_.requests(); }
  // The row of a request that was refused: of the last one whose head was understood.
  AuditRow refusal(AuditEvent event, const Error& error) const;

 private:
  Result<Passed> admit(std::string_view head);
  Result<void> pay(size_t bytes);
  AuditRow row() const;

  Gate& gate_;
  Connection connection_;
  RequestStream stream_;
};

}  // namespace atl::egress
