// Connection: the requests that come over one wire, one after the other. Reads a header within
// limits, hands the request to the handler as an Exchange, and decides whether another may follow.
// Private to this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <boost/asio/cancellation_signal.hpp>

#include "http/exchange.h"
#include "http/head.h"
#include "http/parser.h"
#include "http/places.h"
#include "http/server.h"
#include "http/tunnel.h"
#include "http/wire.h"

namespace atl::http {

class Connection {
 public:
  // kRefuse: one connection too many, which is told so and closed.
  enum class Purpose : unsigned char { kServe, kRefuse };

  // `rules` outlive the connection.
  Connection(Wire::Socket socket, const Rules& rules) : wire_(std::move(socket)), rules_(rules) {}

  // The whole life of the connection.
  Task<void> run();

  // For the server.
  Purpose purpose() const { return place_ ? Purpose::kServe : Purpose::kRefuse; }
  // Before run(): who is at the other end, and its place; null: there is none.
  void set_peer(std::string address, std::unique_ptr<Places::Place> place) {
    peer_ = std::move(address);
    place_ = std::move(place);
  }
  void set_known() { place_->set_known(); }
  void sweep(SteadyTime now) { wire_.sweep(now); }
  // kDrain: an idle connection ends now, a busy one after its answer. kNow: its own operations
  // fail, and the handler's pending one is cancelled; to be repeated until run() has ended, because
  // a cancellation reaches only what is pending at that moment.
  enum class Stop : unsigned char { kDrain, kNow };
  void stop(Stop how);
  boost::asio::cancellation_slot cancellation_slot() { return cancellation_.slot(); }

 private:
  friend class Exchange;

  // For Exchange.
  const std::string& peer_network() const { return peer_; }
  bool is_broken() const { return broken_.has_value() || wire_.interrupted(); }
  // kWhole: from now on the rest of the body has whole_body_time; a byte now and then is progress
  // for ever.
  enum class BodyTime : unsigned char { kProgress, kWhole };
  Task<Result<size_t>> read_body_some(std::span<char> into, BodyTime time = BodyTime::kProgress);
  // Nothing if that is not known before its end.
  std::optional<uint64_t> body_bytes_left() const;
  bool speaks_http_1_1() const { return !parser_->is_http_1_0(); }
  Task<Result<void>> send(Method request_method, Response response);
  // See Exchange::start_stream().
  struct StreamStart {
    Method request_method;
    int status;
    std::string_view comment, first;
  };
  Task<Result<void>> start_stream(StreamStart start, Headers headers);
  Task<Result<void>> write(std::string_view bytes);
  Task<Result<void>> finish(std::string_view last);
  // Bytes of the body as they are sent.
  Result<std::string> framed(std::string_view bytes);
  Task<Result<std::unique_ptr<WebSocket>>> upgrade(const Request& request);
  Task<Result<std::unique_ptr<Tunnel>>> switch_protocols(Headers headers);
  // Calls `on_gone` when the peer goes away, at once if it has, until told otherwise by an empty
  // one.
  void watch_peer(std::function<void()> on_gone);

  void cancel();
  // The answer to the request under way.
  struct Answer {
    enum class Stage : unsigned char { kNone, kBody, kDone, kUpgraded };
    Stage stage = Stage::kNone;
    Framing framing = Framing::kNone;
    bool discard_body = false;     // the answer to HEAD
    uint64_t body_bytes_left = 0;  // for Framing::kLength
    After after = After::kKeepAlive;
  };

  Task<bool> serve_one();
  Task<std::optional<size_t>> read_header();
  Task<void> call_handler(Exchange& exchange);
  Task<bool> settle();
  void write_comment(SteadyTime now, std::string_view text);
  Task<bool> drain_body();
  Task<void> refuse(Refused refused);
  Task<Result<size_t>> receive_body();
  After after_answer(const Headers& headers) const;
  Result<std::string> begin_answer(Method request_method, int status, const Headers& headers,
                                   std::optional<uint64_t> body_bytes);
  // Remembers the first failure: after it nothing works on this connection.
  Error fail(Error error);

  std::string peer_;
  std::unique_ptr<Places::Place> place_;
  Wire wire_;
  const Rules& rules_;
  bool handling_ = false;
  bool stopping_ = false;
  bool served_before_ = false;
  bool owes_continue_ = false;
  std::optional<Error> broken_;
  // The body cannot be read on; an answer can still be given, as the last one.
  std::optional<Error> bad_body_;
  SteadyTime body_deadline_ = kNever;
  std::optional<RequestParser> parser_;
  Answer answer_;
  SteadyTime next_comment_ = kNever;
  boost::asio::cancellation_signal cancellation_;
};

}  // namespace atl::http
