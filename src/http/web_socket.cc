#include "http/web_socket.h"

#include <algorithm>
#include <chrono>

#include <boost/asio/post.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>

#include "base/utf8.h"
#include "http/web_socket_stream.h"

namespace atl::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;

constexpr std::chrono::milliseconds kCloseTime{2000};
constexpr size_t kKeyBytes = 24;              // 16 bytes in base 64
constexpr size_t kMaxCloseReasonBytes = 123;  // RFC 6455, 5.5

// The wire's socket as Beast sees it. A type of its own because of its teardown: Beast's waits
// without limit for the peer to close, ours leaves that to Wire::linger().
class LentSocket {
 public:
  using executor_type = Wire::Socket::executor_type;

  explicit LentSocket(Wire::Socket& socket) : socket_(socket) {}

  executor_type get_executor() { return socket_.get_executor(); }
  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return socket_.async_read_some(buffers, std::forward<Token>(token));
  }
  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return socket_.async_write_some(buffers, std::forward<Token>(token));
  }
  void end_sending(error_code& error) { socket_.shutdown(Wire::Socket::shutdown_send, error); }

 private:
  Wire::Socket& socket_;
};

template <typename Handler>
void async_teardown(beast::role_type, LentSocket& socket, Handler&& handler) {
  error_code error;
  socket.end_sending(error);
  asio::post(socket.get_executor(),
             beast::bind_front_handler(std::forward<Handler>(handler), error));
}

void beast_close_socket(LentSocket& socket) {
  error_code error;
  socket.end_sending(error);
}

class WireWebSocket final : public WebSocket {
 public:
  using Stream = beast::websocket::stream<LentSocket>;

  WireWebSocket(Wire& wire, const Limits& limits)
      : wire_(wire),
        write_time_(limits.write_time),
        // Proxies cut connections that are silent; a ping in time keeps this one.
        ping_time_(limits.idle_time / 3),
        next_ping_(std::chrono::steady_clock::now() + ping_time_),
        stream_(wire.socket()) {
    stream_.read_message_max(limits.web_socket_message_bytes);
    stream_.auto_fragment(false);
    wire_.set_on_sweep([this](SteadyTime now) { ping(now); });
  }
  ~WireWebSocket() override { wire_.set_on_sweep(nullptr); }

  Stream& stream() { return stream_; }

  asio::awaitable<Result<Message>> read() override;
  asio::awaitable<Result<void>> write(Kind kind, std::string_view data) override;
  asio::awaitable<Result<void>> close(unsigned code, std::string_view reason) override;

 private:
  void ping(SteadyTime now);

  Wire& wire_;
  std::chrono::milliseconds write_time_;
  std::chrono::milliseconds ping_time_;
  SteadyTime next_ping_;
  // Shared with the ping that is under way, which may end after this socket.
  std::shared_ptr<bool> pinging_ = std::make_shared<bool>(false);
  Stream stream_;
};

asio::awaitable<Result<WebSocket::Message>> WireWebSocket::read() {
  if (wire_.interrupted()) {
    co_return Error(Code::kCancelled, "read web socket: connection is ending");
  }
  beast::flat_buffer buffer;
  auto [error, count] = co_await stream_.async_read(buffer, kAwait);
  if (error == beast::websocket::error::closed) {
    co_return Error(Code::kCancelled, "read web socket: closed by the peer");
  }
  if (error == beast::websocket::error::message_too_big) {
    co_return Error(Code::kExhausted, "read web socket: message is too long");
  }
  if (error) co_return wire_.failure("read web socket", error);
  Message message;
  message.kind = stream_.got_text() ? Kind::kText : Kind::kBinary;
  auto bytes = buffer.cdata();
  message.data.assign(static_cast<const char*>(bytes.data()), bytes.size());
  co_return message;
}

asio::awaitable<Result<void>> WireWebSocket::write(Kind kind, std::string_view data) {
  if (wire_.interrupted()) {
    co_return Error(Code::kCancelled, "write web socket: connection is ending");
  }
  if (kind == Kind::kText && !is_utf8(data)) {
    co_return Error(Code::kInvalid, "write web socket: text is not UTF-8");
  }
  stream_.binary(kind == Kind::kBinary);
  asio::const_buffer bytes(data.data(), data.size());
  wire_.set_write_deadline(std::chrono::steady_clock::now() + write_time_);
  auto [error, count] = co_await stream_.async_write(bytes, kAwait);
  wire_.set_write_deadline(kNever);
  if (error) co_return wire_.failure("write web socket", error);
  co_return Result<void>();
}

asio::awaitable<Result<void>> WireWebSocket::close(unsigned code, std::string_view reason) {
  if (wire_.interrupted()) {
    co_return Error(Code::kCancelled, "close web socket: connection is ending");
  }
  if (reason.size() > kMaxCloseReasonBytes || !is_utf8(reason)) {
    co_return Error(Code::kInvalid, "close web socket: bad reason");
  }
  beast::websocket::close_reason close_reason;
  close_reason.code = static_cast<uint16_t>(code);
  close_reason.reason.assign(reason.begin(), reason.end());
  // Beast waits for the peer's close frame; a peer that never sends it must not hold us.
  wire_.set_write_deadline(std::chrono::steady_clock::now() + std::min(write_time_, kCloseTime));
  auto [error] = co_await stream_.async_close(close_reason, kAwait);
  wire_.set_write_deadline(kNever);
  if (error) co_return wire_.failure("close web socket", error);
  co_return Result<void>();
}

void WireWebSocket::ping(SteadyTime now) {
  if (now < next_ping_ || *pinging_ || !stream_.is_open() || wire_.interrupted()) return;
  next_ping_ = now + ping_time_;
  *pinging_ = true;
  // A dead peer is found by TCP keep-alive or by the write; here the outcome does not matter.
  stream_.async_ping({}, [pinging = pinging_](const error_code&) { *pinging = false; });
}

beast::http::request<beast::http::empty_body> to_beast(const Request& request) {
  beast::http::request<beast::http::empty_body> upgrade;
  upgrade.version(11);
  upgrade.method(beast::http::verb::get);
  upgrade.target(request.target);
  for (const auto& [name, value] : request.headers.fields()) upgrade.insert(name, value);
  return upgrade;
}

}  // namespace

asio::awaitable<Result<std::unique_ptr<WebSocket>>> upgrade(Wire& wire, const Request& request,
                                                            const Limits& limits) {
  auto beast_request = to_beast(request);
  auto version = request.headers.find("sec-websocket-version");
  auto key = request.headers.find("sec-websocket-key");
  // Beast would answer these itself; an error of ours keeps one shape of error answers.
  if (!beast::websocket::is_upgrade(beast_request) || version != "13" || !key ||
      key->size() != kKeyBytes) {
    co_return Error(Code::kInvalid, "not a proper WebSocket upgrade");
  }
  // RFC 6455 lets the client send nothing before the answer.
  if (!wire.input().empty()) {
    co_return Error(Code::kInvalid, "bytes after the WebSocket upgrade request");
  }
  auto web_socket = std::make_unique<WireWebSocket>(wire, limits);
  wire.set_write_deadline(std::chrono::steady_clock::now() + limits.write_time);
  auto [error] = co_await web_socket->stream().async_accept(beast_request, kAwait);
  wire.set_write_deadline(kNever);
  if (error) co_return wire.failure("accept web socket", error);
  co_return Result<std::unique_ptr<WebSocket>>(std::move(web_socket));
}

}  // namespace atl::http
