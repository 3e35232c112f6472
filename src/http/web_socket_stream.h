// The upgrade of a wire to a WebSocket. Private to this folder.
#pragma once

#include <memory>

#include "http/message.h"
#include "http/server.h"
#include "http/web_socket.h"
#include "http/wire.h"

namespace atl::http {

// Answers 101 and returns the socket, or answers nothing and returns kInvalid when the request is
// not a proper upgrade. `wire` must outlive the socket.
boost::asio::awaitable<Result<std::unique_ptr<WebSocket>>> upgrade(Wire& wire,
                                                                   const Request& request,
                                                                   const Limits& limits);

}  // namespace atl::http
