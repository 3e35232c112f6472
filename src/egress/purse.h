// Purse: what one connection takes from the budgets of its rule and of its sandbox. Errors are
// those of Spending.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "egress/spending.h"

namespace atl::egress {

class Purse {
 public:
  explicit Purse(Spending& spending) : spending_(spending) {}
  // When something was last taken, or tried.
  SteadyTime last_used() const { return last_used_; }
  // The rule that allows it, which another policy may number otherwise.
  void set_rule(size_t rule) { rule_ = rule; }

  // A connection, and its first request.
  Result<void> begin();
  // `all` requests have been made so far on this connection.
  Result<void> count_requests(uint64_t all);
  // How many bytes may be taken from a socket that can be read, at most `most`.
  Result<size_t> share(int socket, Flow flow, size_t most) const;
  // Bytes that were taken.
  void spend(Flow flow, uint64_t bytes);
  // Bytes that are to go on in one piece: all of them or none.
  Result<void> spend_piece(Flow flow, size_t bytes);

 private:
  Spending& spending_;
  size_t rule_ = 0;
  uint64_t requests_ = 1;
  SteadyTime last_used_ = SystemClock().steady_now();
};

}  // namespace atl::egress
