// What atolld asks of egress now and then, besides networks and their policies: authorities and
// secrets. Each call has a connection of its own, so that none waits behind another and nothing of
// it is remembered here.
#pragma once

#include <optional>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "base/ids.h"
#include "base/result.h"
#include "egress/text_call.h"
#include "isolate/task.h"

namespace atl::isolate {

class Driver;

struct EgressCall {
  egress::Operation operation = egress::kShowAuthority;
  std::optional<SandboxId> sandbox = {};
  uint64_t tenant = 0;
  std::string text = {};
};

// A driver whose isolates have egress is one of these too.
class EgressCalls {
 public:
  virtual ~EgressCalls() = default;
  // Its text. kUnavailable with reason egress_unavailable, kNotFound, kInvalid.
  virtual Task<Result<std::string>> call_egress(EgressCall call) = 0;
};

// By a driver that may have no egress: kUnsupported then.
Task<Result<std::string>> call_egress(Driver& driver, EgressCall call);

// Over the socket in `directory`.
Task<Result<std::string>> call_egress(boost::asio::any_io_executor executor, std::string directory,
                                      EgressCall call);

}  // namespace atl::isolate
