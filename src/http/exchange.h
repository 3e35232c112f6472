// One request and its answer on one connection. A handler reads the body if it wants it, then
// answers once: by reply(), or by start_stream() + write()… + finish(), or by accept_web_socket(),
// or by switch_protocols().
//
// Belongs to the io_context thread. Valid until the handler's coroutine ends. When the peer goes
// away or a time limit runs out, the pending operation returns an error (kCancelled or kTimeout)
// and so do all later ones. Only a body that is malformed (kInvalid) or does not come (kTimeout)
// can still be answered.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>

#include "base/result.h"
#include "http/message.h"
#include "http/web_socket.h"

namespace atl::http {

template <typename T>
using Task = boost::asio::awaitable<T>;

class Connection;
class Tunnel;

class Exchange {
 public:
  Exchange(Connection& connection, Request request);

  const Request& request() const { return request_; }
  bool answered() const { return status_ != 0; }
  // Of the answer; 0 if none was given.
  int status() const { return status_; }
  // As far as is known: nobody is left to be answered.
  bool peer_gone() const;
  // The peer's address as text; of a v6 one only the network, of which a host may have it all.
  const std::string& peer_network() const;

  // The whole body; kExhausted when it is over `limit` (also when it only claims to be).
  Task<Result<std::string>> read_body(size_t limit);
  // Part of the body, for streaming uploads; 0 at its end.
  Task<Result<size_t>> read_body_some(std::span<char> into);

  Task<Result<void>> reply(Response response);

  // A chunked answer. write() returns when the bytes are handed to the kernel: a slow reader slows
  // the writer.
  // `comment`: written by itself whenever the stream was silent for Limits::comment_time; static.
  // `first`: goes with the head, in one segment, as `last` goes with the end: each that is sent by
  // itself wakes the peer once more.
  Task<Result<void>> start_stream(int status, Headers headers, std::string_view comment = "",
                                  std::string_view first = "");
  Task<Result<void>> write(std::string_view bytes);
  Task<Result<void>> finish(std::string_view last = "");

  // For a handler that waits for something other than its peer, with the whole body read. While the
  // watch lives, a peer that goes away or ends its side cancels what the handler's coroutine waits
  // for, and gone() is true from then on.
  class PeerWatch {
   public:
    explicit PeerWatch(Connection& connection);  // not movable: the connection knows its place
    ~PeerWatch();
    PeerWatch(const PeerWatch&) = delete;
    PeerWatch& operator=(const PeerWatch&) = delete;
    bool gone() const { return gone_; }

   private:
    Connection& connection_;
    bool gone_ = false;
  };
  PeerWatch watch_peer() { return PeerWatch(connection_); }

  bool wants_web_socket() const;
  // Answers 101. The handler keeps using the socket until it returns.
  Task<Result<std::unique_ptr<WebSocket>>> accept_web_socket();

  // Answers 101 with these fields; afterwards the connection carries raw bytes both ways.
  Task<Result<std::unique_ptr<Tunnel>>> switch_protocols(Headers headers);

 private:
  friend void set_known(Exchange& exchange);

  Connection& connection_;
  Request request_;
  int status_ = 0;
};

// The request has shown a key, or what stands for one: the connection is not a stranger's any more,
// which would be closed for others to have room.
void set_known(Exchange& exchange);

// Server-sent events on top of a started stream. Data with line breaks becomes several data lines,
// so a program's output cannot inject an event; `id` and `event` must not contain line breaks.
struct ServerSentEvent {
  std::string id;
  std::string event;
  std::string data;
};
std::string format_event(const ServerSentEvent& event);
// start_stream() with the header fields that event streams need. While the stream is silent the
// server writes a comment now and then, which proxies and dead peers notice.
Task<Result<void>> start_events(Exchange& exchange, Headers headers = {});

}  // namespace atl::http
