#include "egress/purse.h"

#include <sys/socket.h>

#include <algorithm>

namespace atl::egress {

Result<void> Purse::begin() {
  ATOLL_TRY_VOID(spending_.take_requests(rule_, 1, SystemClock().steady_now()));
  return spending_.begin_connection(rule_);
}

Result<void> Purse::count_requests(uint64_t all) {
  uint64_t more = all - std::min(requests_, all);
  requests_ += more;
  if (more == 0) return {};
  return spending_.take_requests(rule_, more, SystemClock().steady_now());
}

Result<size_t> Purse::share(int socket, Flow flow, size_t most) const {
  uint64_t left = spending_.left(rule_, flow);
  if (left > 0) return static_cast<size_t>(std::min<uint64_t>(left, most));
  char byte = 0;
  // The end of a stream costs nothing.
  if (recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0) return size_t{1};
  return spending_.overdraft(rule_, flow);
}

void Purse::spend(Flow flow, uint64_t bytes) {
  last_used_ = SystemClock().steady_now();
  spending_.spend(rule_, flow, bytes);
}

Result<void> Purse::spend_piece(Flow flow, size_t bytes) {
  if (spending_.left(rule_, flow) < bytes) return spending_.overdraft(rule_, flow);
  spend(flow, bytes);
  return {};
}

}  // namespace atl::egress
