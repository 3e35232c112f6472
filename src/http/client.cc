#include "http/client.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/fd.h"
#include "http/dial.h"
#include "http/head.h"
#include "http/parser.h"

namespace atl::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr size_t kMaxHeaderBytes = 64 * 1024;
constexpr size_t kStepBytes = 64 * 1024;
constexpr size_t kMaxConsumedBytes = 4 * 1024 * 1024;

bool is_idempotent(Method method) { return method != Method::kPost && method != Method::kPatch; }

class BlockingClient final : public Client {
 public:
  BlockingClient(std::string host, unsigned short port, milliseconds timeout)
      : host_(std::move(host)), port_(port), timeout_(timeout) {}

  Result<Response> send(Method method, const std::string& target, const Headers& headers,
                        std::string body) override;
  Result<Response> stream(Method method, const std::string& target, const Headers& headers,
                          std::string body, Sink sink) override;
  Result<Response> upload(Method method, const std::string& target, const Headers& headers,
                          Upload body) override;

 private:
  // A request ready for the wire.
  struct Message {
    Method method;
    std::string head;
    std::string body;
    bool may_repeat;
    const Upload* upload = nullptr;  // instead of `body`
  };

  Result<Message> prepare(Method method, const std::string& target, const Headers& headers,
                          std::string body) const;
  Result<Response> exchange(const Message& message, const Sink& sink);
  Result<Response> exchange_once(const Message& message, const Sink& sink);
  Result<void> send_message(const Message& message);
  Result<void> send_upload(const Upload& upload);
  Result<void> send_bytes(std::string_view bytes);
  Result<Response> exchange_whole(const Message& message);
  Result<Response> receive(const Message& message, const Sink& sink);
  Result<void> receive_header(ResponseParser& parser, Method method);
  Result<void> receive_body(ResponseParser& parser, const Response& head, const Sink& sink);
  // 0 at the end of the stream.
  Result<size_t> receive_more();
  Result<void> wait(short events);
  bool idle_connection_is_dead() const;
  void hang_up();
  std::string_view input() const { return std::string_view(input_).substr(consumed_); }
  void consume(size_t bytes);

  std::string host_;
  unsigned short port_;
  milliseconds timeout_;
  Fd socket_;
  std::string input_;
  size_t consumed_ = 0;  // bytes at the front of input_
  bool heard_ = false;   // any byte of the answer
  SteadyTime deadline_;
};

Result<Response> BlockingClient::send(Method method, const std::string& target,
                                      const Headers& headers, std::string body) {
  ATOLL_TRY(Message message, prepare(method, target, headers, std::move(body)));
  return exchange_whole(message);
}

Result<Response> BlockingClient::stream(Method method, const std::string& target,
                                        const Headers& headers, std::string body, Sink sink) {
  ATOLL_TRY(Message message, prepare(method, target, headers, std::move(body)));
  auto pass_on = [&](const Response& head, std::string_view bytes) {
    bool more = sink(head, bytes);
    deadline_ = steady_clock::now() + timeout_;
    return more;
  };
  return exchange(message, pass_on);
}

Result<Response> BlockingClient::upload(Method method, const std::string& target,
                                        const Headers& headers, Upload body) {
  std::string host = host_field(host_, port_);
  Message message{.method = method, .head = "", .body = "", .may_repeat = false, .upload = &body};
  Framing framing = body.bytes ? Framing::kLength : Framing::kChunked;
  ATOLL_TRY(message.head, format_request_head({.method = method,
                                               .target = target,
                                               .host = host,
                                               .body_bytes = body.bytes.value_or(0),
                                               .framing = framing},
                                              headers));
  return exchange_whole(message);
}

Result<Response> BlockingClient::exchange_whole(const Message& message) {
  std::string received;
  bool too_long = false;
  auto keep = [&](const Response&, std::string_view bytes) {
    too_long = bytes.size() > kMaxResponseBytes - received.size();
    if (!too_long) received.append(bytes);
    return !too_long;
  };
  ATOLL_TRY(Response response, exchange(message, keep));
  if (too_long) return Error(Code::kExhausted, "receive from " + host_ + ": answer is too long");
  response.body = std::move(received);
  return response;
}

Result<BlockingClient::Message> BlockingClient::prepare(Method method, const std::string& target,
                                                        const Headers& headers,
                                                        std::string body) const {
  std::string host = host_field(host_, port_);
  RequestHead head{.method = method, .target = target, .host = host, .body_bytes = body.size()};
  ATOLL_TRY(std::string text, format_request_head(head, headers));
  bool may_repeat = is_idempotent(method) || headers.find("idempotency-key").has_value();
  return Message{
      .method = method, .head = std::move(text), .body = std::move(body), .may_repeat = may_repeat};
}

Result<Response> BlockingClient::exchange(const Message& message, const Sink& sink) {
  deadline_ = steady_clock::now() + timeout_;
  if (idle_connection_is_dead()) hang_up();
  bool reused = socket_.valid();
  heard_ = false;
  auto response = exchange_once(message, sink);
  if (response.ok()) return response;
  hang_up();
  // The server closed the idle connection just when the request was under way. Whether it acted on
  // it nobody knows, so only what may be done twice is sent again.
  bool closed = response.error().code() == Code::kUnavailable;
  if (!reused || heard_ || !closed || !message.may_repeat) return response;
  response = exchange_once(message, sink);
  if (!response.ok()) hang_up();
  return response;
}

Result<Response> BlockingClient::exchange_once(const Message& message, const Sink& sink) {
  if (!socket_) {
    ATOLL_TRY(socket_, dial(host_, port_, deadline_));
  }
  auto sent = send_message(message);
  // A server that refuses a long body answers and closes; the answer says more than the failed
  // send.
  if (!sent.ok() && sent.error().code() != Code::kUnavailable) return std::move(sent).error();
  auto response = receive(message, sink);
  if (!response.ok() && !sent.ok() && !heard_) return std::move(sent).error();
  return response;
}

Result<void> BlockingClient::send_message(const Message& message) {
  if (message.upload != nullptr) {
    ATOLL_TRY_VOID(send_bytes(message.head));
    return send_upload(*message.upload);
  }
  // One segment for small requests: two would cost a second wake-up of the server.
  if (message.body.size() <= kStepBytes) return send_bytes(message.head + message.body);
  ATOLL_TRY_VOID(send_bytes(message.head));
  return send_bytes(message.body);
}

Result<void> BlockingClient::send_upload(const Upload& upload) {
  std::string piece(kStepBytes, '\0');
  uint64_t total = 0;
  for (;;) {
    ATOLL_TRY(size_t count, upload.source(piece));
    ATOLL_CHECK(count <= piece.size());
    total += count;
    if (upload.bytes && (total > *upload.bytes || (count == 0 && total < *upload.bytes)))
      return Error(Code::kConflict, "send: what is sent changed its size meanwhile");
    std::string_view bytes(piece.data(), count);
    deadline_ = steady_clock::now() + timeout_;
    if (upload.bytes && count == 0) return {};
    if (!upload.bytes) ATOLL_TRY_VOID(send_bytes(fmt::format("{:x}\r\n", count)));
    ATOLL_TRY_VOID(send_bytes(bytes));
    if (!upload.bytes) ATOLL_TRY_VOID(send_bytes("\r\n"));
    if (count == 0) return {};
  }
}

Result<void> BlockingClient::send_bytes(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET) {
      return Error(Code::kUnavailable, "send: connection closed by the server");
    }
    if (errno != EAGAIN) return Error::system("send");
    // Reads as well, or a server that answers before it has read everything would wait for us for
    // ever.
    ATOLL_TRY_VOID(wait(POLLIN | POLLOUT));
    pollfd state{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (poll(&state, 1, 0) != 1) continue;
    if (input_.size() >= kMaxResponseBytes) {
      return Error(Code::kExhausted, "receive from " + host_ + ": answer is too long");
    }
    ATOLL_TRY(size_t early, receive_more());
    if (early == 0) return Error(Code::kUnavailable, "send: connection closed by the server");
  }
  return {};
}

Result<Response> BlockingClient::receive(const Message& message, const Sink& sink) {
  for (;;) {
    ResponseParser parser;
    ATOLL_TRY_VOID(receive_header(parser, message.method));
    // 100 Continue and its like come before the answer.
    if (parser.status() / 100 == 1 && parser.status() != 101) continue;
    Response response;
    response.status = parser.status();
    response.headers = parser.take_headers();
    ATOLL_TRY_VOID(receive_body(parser, response, sink));
    bool reusable = parser.body_done() && parser.keep_alive() && input().empty();
    if (!reusable) hang_up();
    return response;
  }
}

Result<void> BlockingClient::receive_header(ResponseParser& parser, Method method) {
  HeaderScanner scanner;
  for (;;) {
    auto length = scanner.scan(input());
    if (!length.ok()) return Error(Code::kCorrupt, "response header: " + length.error().message());
    if (*length > 0) {
      ATOLL_TRY_VOID(parser.parse_header(input().substr(0, *length), method));
      consume(*length);
      return {};
    }
    if (input().size() > kMaxHeaderBytes) {
      return Error(Code::kExhausted, "response header is too long");
    }
    ATOLL_TRY(size_t count, receive_more());
    if (count == 0) return Error(Code::kUnavailable, "receive: connection closed by the server");
  }
}

Result<void> BlockingClient::receive_body(ResponseParser& parser, const Response& head,
                                          const Sink& sink) {
  std::string piece(kStepBytes, '\0');
  while (!parser.body_done()) {
    auto decoded = parser.decode(input(), piece);
    if (!decoded.ok()) return std::move(decoded).error().with_context("response");
    consume(decoded->consumed);
    if (decoded->produced > 0) {
      // Not wanted any more: what is under way on this connection belongs to nobody.
      if (!sink(head, std::string_view(piece).substr(0, decoded->produced))) return {};
      continue;
    }
    if (parser.body_done()) break;
    if (input().size() > kMaxHeaderBytes) return Error(Code::kCorrupt, "response: bad chunk");
    ATOLL_TRY(size_t count, receive_more());
    if (count == 0) return parser.finish();
  }
  return {};
}

Result<size_t> BlockingClient::receive_more() {
  std::array<char, 16 * 1024> piece;
  for (;;) {
    ssize_t count = recv(socket_.get(), piece.data(), piece.size(), 0);
    if (count >= 0) {
      heard_ = heard_ || count > 0;
      input_.append(piece.data(), static_cast<size_t>(count));
      return static_cast<size_t>(count);
    }
    if (errno == EINTR) continue;
    if (errno == ECONNRESET || errno == EPIPE) {
      return Error(Code::kUnavailable, "receive: connection reset by the server");
    }
    if (errno != EAGAIN) return Error::system("receive");
    ATOLL_TRY_VOID(wait(POLLIN));
  }
}

Result<void> BlockingClient::wait(short events) {
  auto ready = wait_for_socket(socket_.get(), events, deadline_);
  if (ready.ok() || ready.error().code() != Code::kTimeout) return ready;
  return Error(Code::kTimeout, host_field(host_, port_) + " did not answer within " +
                                   std::to_string(timeout_.count()) + " ms");
}

// Nothing may arrive between two requests: an end, an error, or bytes that answer nothing.
bool BlockingClient::idle_connection_is_dead() const {
  if (!socket_) return false;
  pollfd state{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  return poll(&state, 1, 0) != 0;
}

void BlockingClient::hang_up() {
  socket_.reset();
  input_.clear();
  consumed_ = 0;
}

void BlockingClient::consume(size_t bytes) {
  consumed_ += bytes;
  // Seldom, because what is left has to move.
  if (consumed_ < input_.size() && consumed_ < kMaxConsumedBytes) return;
  input_.erase(0, consumed_);
  consumed_ = 0;
}

}  // namespace

std::unique_ptr<Client> Client::create(std::string host, unsigned short port,
                                       milliseconds timeout) {
  return std::make_unique<BlockingClient>(std::move(host), port, timeout);
}

}  // namespace atl::http
