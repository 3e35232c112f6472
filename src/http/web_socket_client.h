// WebSocketClient: the client's end of a WebSocket, for a loop that polls other descriptors too.
// Nothing but open() blocks: the caller polls fd() for wanted_events() and then calls pump().
// Pings are answered by pump().
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "http/message.h"
#include "http/web_socket.h"

namespace atl::http {

class WebSocketClient {
 public:
  struct Opened {
    std::unique_ptr<WebSocketClient> socket;  // null when the server refused
    Response refusal;
  };
  struct Address {
    std::string host;
    unsigned short port = 0;
    std::string target;
  };
  static Result<Opened> open(const Address& address, const Headers& headers,
                             std::chrono::milliseconds timeout);

  int fd() const { return socket_.get(); }
  short wanted_events() const;
  // Sends and receives what can be had at once. kUnavailable: the connection broke.
  Result<void> pump();

  void queue(WebSocket::Kind kind, std::string_view data);
  // For slowing down whoever queues.
  size_t queued_bytes() const { return output_.size(); }
  std::optional<WebSocket::Message> next();

  // The peer said it is done, with this code; nothing more comes after what next() still has.
  std::optional<unsigned> close_code() const { return close_code_; }
  void close(unsigned code);

 private:
  WebSocketClient(Fd socket, std::string input)
      : socket_(std::move(socket)), input_(std::move(input)) {}

  Result<void> send_some();
  Result<void> receive_some();
  Result<bool> take_frame();
  Result<void> take_control(unsigned opcode, std::string data);
  void queue_frame(unsigned opcode, std::string_view data);

  Fd socket_;
  std::string input_;
  std::string output_;
  std::deque<WebSocket::Message> messages_;
  std::optional<WebSocket::Message> partial_;
  std::optional<unsigned> close_code_;
};

inline constexpr size_t kMaxWebSocketMessageBytes = 16 * 1024 * 1024;

}  // namespace atl::http
