// Relay: hands one request on to another server and its answer back, byte for byte where that is
// safe. Header fields that concern one hop stay behind, and so does all that proves who somebody is
// (Authorization, cookies, in both directions): the other server is a stranger. An upgrade, such as
// to a WebSocket, becomes a tunnel.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/exchange.h"

namespace atl::http {

// A connection to the other server, used by two coroutines: one reads, one writes. An operation of
// a coroutine that is cancelled fails.
class Upstream {
 public:
  virtual ~Upstream() = default;
  // The next bytes; empty at the end of the stream.
  virtual Task<Result<std::string>> read() = 0;
  virtual Task<Result<void>> write(std::string_view bytes) = 0;
  virtual void end_writing() = 0;
  // Pending and later operations fail.
  virtual void close() = 0;
};

// Whose origin a browser takes the answer to be of. kShared: also that of pages and answers of this
// server, so only fields pass that speak for the answer itself.
enum class Origin : unsigned char { kShared, kOwn };

struct RelayRequest {
  std::string target;    // path and query for the other server
  std::string host;      // its Host field
  Headers for_upstream;  // added to the request
  Headers for_client;    // added to the answer
  Origin origin = Origin::kShared;
  // How long a tunnel whose client has ended its side waits for the other server to say something.
  std::chrono::milliseconds end_patience{10'000};
};

// An error means that nothing was answered yet; one with the field "body" is the client's. An
// answer that breaks off is cut off here too. A client that goes away ends it.
Task<Result<void>> relay(Exchange& exchange, Upstream& upstream, RelayRequest request);

}  // namespace atl::http
