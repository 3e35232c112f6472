#include "http/tls_listener.h"

#include <sys/socket.h>

#include <array>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "base/log.h"
#include "http/adoption.h"
#include "http/peer_network.h"
#include "http/wire.h"

namespace atl::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Plain = asio::local::stream_protocol::socket;

constexpr size_t kMaxTlsConnections = 8192;
constexpr size_t kPieceBytes = 16 * 1024;  // of a record of TLS
constexpr std::chrono::seconds kHandshakeTime{10};
constexpr std::chrono::seconds kWriteTime{60};
constexpr std::chrono::milliseconds kAcceptBackOff{50};

// One connection: two directions, each a coroutine that holds a share. When one of them can go no
// further both sockets are closed, which ends the other.
class TlsConnection : public std::enable_shared_from_this<TlsConnection> {
 public:
  TlsConnection(tcp::socket socket, asio::ssl::context& context, std::shared_ptr<size_t> count)
      : tls_(std::move(socket), context),
        plain_(tls_.get_executor()),
        timer_(tls_.get_executor()),
        count_(std::move(count)) {
    ++*count_;
  }
  ~TlsConnection() { --*count_; }
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;

  static Task<void> run(std::shared_ptr<TlsConnection> self, Server& server) {
    self->arm(kHandshakeTime);
    auto [error] = co_await self->tls_.async_handshake(asio::ssl::stream_base::server, kAwait);
    self->timer_.cancel();
    if (error || !self->pair_up(server)) co_return;
    auto outwards = write_out(self);
    // detached: owned by its sockets, which end it; it holds a share of the connection
    asio::co_spawn(self->tls_.get_executor(), std::move(outwards), asio::detached);
    co_await self->read_in();
  }

 private:
  // Closes everything unless it is cancelled in time.
  void arm(std::chrono::seconds time) {
    timer_.expires_after(time);
    timer_.async_wait([weak = weak_from_this()](const error_code& error) {
      auto self = weak.lock();
      if (!error && self) self->close();
    });
  }

  bool pair_up(Server& server) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
      log_error("connection dropped", {Error::system("socketpair")});
      return false;
    }
    Fd inner(pair[0]);
    Fd outer(pair[1]);
    error_code error;
    plain_.assign(asio::local::stream_protocol(), outer.get(), error);
    if (error) return false;
    static_cast<void>(outer.release());
    adopt(server, std::move(inner), network_of_peer(tls_.next_layer()));
    return true;
  }

  Task<void> read_in() {
    std::array<char, kPieceBytes> piece;
    while (true) {
      asio::mutable_buffer room(piece.data(), piece.size());
      auto [error, count] = co_await tls_.async_read_some(room, kAwait);
      if (error == asio::error::eof || error == asio::ssl::error::stream_truncated) break;
      if (error) co_return close();
      asio::const_buffer bytes(piece.data(), count);
      auto [failed, sent] = co_await asio::async_write(plain_, bytes, kAwait);
      if (failed) co_return close();
    }
    error_code ignored;
    plain_.shutdown(Plain::shutdown_send, ignored);
  }

  static Task<void> write_out(std::shared_ptr<TlsConnection> self) {
    std::array<char, kPieceBytes> piece;
    while (true) {
      asio::mutable_buffer room(piece.data(), piece.size());
      auto [error, count] = co_await self->plain_.async_read_some(room, kAwait);
      if (error == asio::error::eof) break;
      if (error) co_return self->close();
      self->arm(kWriteTime);
      asio::const_buffer bytes(piece.data(), count);
      auto [failed, sent] = co_await asio::async_write(self->tls_, bytes, kAwait);
      self->timer_.cancel();
      if (failed) co_return self->close();
    }
    self->arm(kHandshakeTime);
    co_await self->tls_.async_shutdown(kAwait);
    self->timer_.cancel();
    self->close();
  }

  void close() {
    error_code ignored;
    tls_.next_layer().close(ignored);
    plain_.close(ignored);
  }

  asio::ssl::stream<tcp::socket> tls_;
  Plain plain_;
  asio::steady_timer timer_;
  std::shared_ptr<size_t> count_;  // of all; they may outlive the listener
};

class AsioTlsListener final : public TlsListener {
 public:
  AsioTlsListener(asio::io_context& context, asio::ssl::context tls, Server& server)
      : tls_(std::move(tls)), acceptor_(context), back_off_(context), server_(server) {}

  Result<void> bind(const TlsAddress& where);
  unsigned short port() const override { return port_; }
  Task<void> run() override;
  void stop() override {
    stopping_ = true;
    error_code ignored;
    acceptor_.close(ignored);
    back_off_.cancel();
  }

 private:
  asio::ssl::context tls_;
  tcp::acceptor acceptor_;
  asio::steady_timer back_off_;
  Server& server_;
  unsigned short port_ = 0;
  std::shared_ptr<size_t> open_ = std::make_shared<size_t>(0);
  bool stopping_ = false;
};

Result<void> AsioTlsListener::bind(const TlsAddress& where) {
  std::string what = "listen for TLS on " + where.address + " port " + std::to_string(where.port);
  error_code error;
  asio::ip::address parsed = asio::ip::make_address(where.address, error);
  if (error) return Error(Code::kInvalid, what + ": not an IP address");
  tcp::endpoint endpoint(parsed, where.port);
  // By hand, because Asio opens sockets without CLOEXEC.
  Fd fd(socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Error::system(what);
  int on = 1;
  if (setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(fd.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0 ||
      ::listen(fd.get(), SOMAXCONN) != 0)
    return Error::system(what);
  acceptor_.assign(endpoint.protocol(), fd.get(), error);
  if (error) return Error(Code::kSystem, what + ": " + error.message(), error.value());
  static_cast<void>(fd.release());
  port_ = acceptor_.local_endpoint(error).port();
  return {};
}

Task<void> AsioTlsListener::run() {
  while (!stopping_) {
    auto [error, socket] = co_await acceptor_.async_accept(kAwait);
    if (stopping_) co_return;
    if (error) {
      // Out of descriptors, mostly: the connection stays in the backlog.
      back_off_.expires_after(kAcceptBackOff);
      co_await back_off_.async_wait(kAwait);
      continue;
    }
    if (*open_ >= kMaxTlsConnections) continue;
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    socket.set_option(asio::socket_base::keep_alive(true), ignored);
    auto connection = std::make_shared<TlsConnection>(std::move(socket), tls_, open_);
    auto life = TlsConnection::run(connection, server_);
    // detached: owned by its sockets, which end it; it holds a share of the connection
    asio::co_spawn(acceptor_.get_executor(), std::move(life), asio::detached);
  }
}

Error unusable(const std::string& file, const error_code& error) {
  return Error(Code::kInvalid, "TLS: " + file + ": " + error.message());
}

Result<void> load(asio::ssl::context& tls, const TlsFiles& files) {
  error_code error;
  tls.use_certificate_chain_file(files.certificate, error);
  if (error) return unusable(files.certificate, error);
  tls.use_private_key_file(files.key, asio::ssl::context::pem, error);
  if (error) return unusable(files.key, error);
  if (SSL_CTX_check_private_key(tls.native_handle()) != 1)
    return Error(Code::kInvalid, "TLS: " + files.key + " is not the key of " + files.certificate);
  return {};
}

}  // namespace

Result<void> check_tls_files(const TlsFiles& files) {
  asio::ssl::context tls(asio::ssl::context::tls_server);
  return load(tls, files);
}

Result<std::unique_ptr<TlsListener>> TlsListener::listen(asio::io_context& context,
                                                         const TlsAddress& where,
                                                         const TlsFiles& files, Server& server) {
  asio::ssl::context tls(asio::ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(tls.native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_options(tls.native_handle(), SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(tls.native_handle(), SSL_MODE_RELEASE_BUFFERS);
  ATOLL_TRY_VOID(load(tls, files));
  auto listener = std::make_unique<AsioTlsListener>(context, std::move(tls), server);
  ATOLL_TRY_VOID(listener->bind(where));
  return std::unique_ptr<TlsListener>(std::move(listener));
}

}  // namespace atl::http
