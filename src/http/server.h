// The listener: accepts, reads requests within limits and hands each to one handler. HTTP/1.1 with
// keep-alive, chunked bodies both ways and WebSocket.
//
// Belongs to the io_context thread. stop() ends the server cleanly: no new connections, idle ones
// closed, requests under way get `drain` to finish and are then cancelled; afterwards run()
// returns. A cancelled handler sees its pending operation fail (Asio's per-operation cancellation,
// terminal) and must return: run() waits for it and cancels again every 100 ms.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "base/result.h"
#include "http/exchange.h"

namespace atl::http {

struct Limits {
  size_t header_bytes = 16 * 1024;
  size_t connections = 16384;
  // Of those on which nobody has shown a key: by address, and by its network (/24, or /48).
  size_t connections_by_address = 4096;
  size_t connections_by_network = 8192;
  size_t connections_kept = 2048;  // for addresses that have shown a key
  std::chrono::milliseconds header_time{
      10'000};                                  // first byte of a request to the end of its header
  std::chrono::milliseconds idle_time{75'000};  // between two requests
  std::chrono::milliseconds body_time{30'000};  // without progress while reading a body
  std::chrono::milliseconds whole_body_time{60'000};  // all of a body that is read at once
  std::chrono::milliseconds write_time{60'000};       // without progress while writing
  std::chrono::milliseconds comment_time{15'000};     // of silence in a stream of events
  std::chrono::milliseconds drain{5'000};
  size_t web_socket_message_bytes = 1024 * 1024;
};

using Handler = std::function<Task<void>(Exchange&)>;

// How a request that never reached the handler is answered (bad syntax, too large a header, too
// slow, too many connections), so that the API keeps one shape of error. `reason` is for people.
using Refusal = std::function<Response(int status, std::string_view reason)>;

// What all connections of a server follow.
struct Rules {
  Limits limits;
  Handler handler;
  Refusal refusal;
};

// To be destroyed before run() was started or after it returned, and before the io_context.
class Server {
 public:
  // Binds and listens at once, so that a taken port is an error here. `address` is a literal; port
  // 0 picks a free one.
  static Result<std::unique_ptr<Server>> listen(boost::asio::io_context& context,
                                                const std::string& address, unsigned short port,
                                                Rules rules);
  virtual ~Server() = default;
  virtual unsigned short port() const = 0;
  virtual size_t open_connections() const = 0;
  // How many were closed for others to have room.
  virtual uint64_t dropped_connections() const = 0;
  // Serves until stopped, or until its own coroutine is cancelled, which counts as stop().
  virtual Task<void> run() = 0;
  virtual void stop() = 0;
};

}  // namespace atl::http
