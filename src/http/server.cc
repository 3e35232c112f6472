#include "http/server.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <list>
#include <netinet/tcp.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/fd.h"
#include "base/log.h"
#include "http/adoption.h"
#include "http/connection.h"
#include "http/peer_network.h"
#include "http/places.h"

namespace atl::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr milliseconds kAcceptBackOff{50};
constexpr milliseconds kCancelAgain{100};
constexpr milliseconds kStuckHandlerWarning{10'000};
constexpr size_t kAcceptsPerTurn = 64;
// Connections over the limit that are told so; those beyond are closed without a word.
constexpr size_t kMaxRefusals = 64;

// A peer that vanished without a word is noticed after idle + count * interval seconds.
struct KeepAlive {
  int idle = 60;
  int interval = 15;
  int count = 4;
};

milliseconds sweep_period(const Limits& limits) {
  milliseconds shortest = std::min({limits.header_time, limits.idle_time, limits.body_time,
                                    limits.write_time, limits.comment_time});
  return std::clamp(shortest / 8, milliseconds(5), milliseconds(1000));
}

Result<void> set_option(int fd, int level, int option, int value) {
  if (setsockopt(fd, level, option, &value, sizeof value) == 0) return {};
  return Error::system("setsockopt " + std::to_string(option));
}

Result<void> configure(int fd) {
  KeepAlive keep_alive;
  ATOLL_TRY_VOID(set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1));
  ATOLL_TRY_VOID(set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1));
  ATOLL_TRY_VOID(set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, keep_alive.idle));
  ATOLL_TRY_VOID(set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, keep_alive.interval));
  return set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, keep_alive.count);
}

bool is_readable(int fd) {
  pollfd state{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&state, 1, 0) > 0;
}

// By hand, because Asio opens sockets without CLOEXEC.
Result<Fd> open_listener(const tcp::endpoint& endpoint) {
  int family = endpoint.protocol().family();
  Fd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!fd) return Error::system("socket");
  ATOLL_TRY_VOID(set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1));
  if (bind(fd.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0) {
    return Error::system("bind");
  }
  if (::listen(fd.get(), SOMAXCONN) != 0) return Error::system("listen");
  return fd;
}

class TcpServer final : public Server {
 public:
  TcpServer(asio::io_context& context, tcp::acceptor acceptor, tcp::endpoint endpoint, Rules rules)
      : rules_(std::move(rules)),
        places_(rules_.limits),
        period_(sweep_period(rules_.limits)),
        endpoint_(std::move(endpoint)),
        acceptor_(std::move(acceptor)),
        back_off_(context),
        wake_(context) {}
  ~TcpServer() override {
    // Their coroutines would go on with a server that is gone.
    ATOLL_CHECK(connections_.empty() && !accepting_);
  }

  unsigned short port() const override { return endpoint_.port(); }
  size_t open_connections() const override { return places_.taken(); }
  uint64_t dropped_connections() const override { return places_.dropped(); }
  Task<void> run() override;
  void stop() override;
  // An empty peer: whoever the kernel says.
  void admit(Fd fd, std::string peer);

 private:
  using Connections = std::list<Connection>;

  Task<void> accept_loop();
  // False when the host is out of descriptors or memory.
  bool accept_pending();
  void remove(Connections::iterator connection);
  SteadyTime next_wake(SteadyTime now) const;
  void sweep(SteadyTime now);

  Rules rules_;
  Places places_;  // outlives the connections
  milliseconds period_;
  tcp::endpoint endpoint_;
  tcp::acceptor acceptor_;
  asio::steady_timer back_off_;
  asio::steady_timer wake_;
  Connections connections_;
  size_t refusals_ = 0;
  bool accepting_ = false;
  bool out_of_resources_ = false;
  bool stopping_ = false;
  bool warned_ = false;
  SteadyTime drain_end_;
};

Task<void> TcpServer::run() {
  auto executor = co_await asio::this_coro::executor;
  bool throws = co_await asio::this_coro::throw_if_cancelled();
  auto as_values = asio::this_coro::throw_if_cancelled(false);
  co_await as_values;
  accepting_ = true;
  asio::co_spawn(executor, accept_loop(), [this](std::exception_ptr thrown) {
    if (thrown) log_error("accept loop threw");
    accepting_ = false;
    wake_.cancel();
  });
  while (accepting_ || !connections_.empty()) {
    wake_.expires_at(next_wake(std::chrono::steady_clock::now()));
    co_await wake_.async_wait(kAwait);
    auto cancelled = co_await asio::this_coro::cancellation_state;
    if (cancelled.cancelled() != asio::cancellation_type::none) stop();
    sweep(std::chrono::steady_clock::now());
  }
  auto as_before = asio::this_coro::throw_if_cancelled(throws);
  co_await as_before;
}

void TcpServer::stop() {
  if (stopping_) return;
  stopping_ = true;
  drain_end_ = std::chrono::steady_clock::now() + rules_.limits.drain;
  error_code error;
  acceptor_.close(error);
  if (error) log_warning("close listener", {{"error", std::string_view(error.message())}});
  back_off_.cancel();
  for (Connection& connection : connections_) connection.stop(Connection::Stop::kDrain);
  wake_.cancel();
}

SteadyTime TcpServer::next_wake(SteadyTime now) const {
  if (connections_.empty()) return kNever;
  if (!stopping_) return now + period_;
  return now < drain_end_ ? std::min(now + period_, drain_end_) : now + kCancelAgain;
}

void TcpServer::sweep(SteadyTime now) {
  for (Connection& connection : connections_) connection.sweep(now);
  if (!stopping_ || now < drain_end_) return;
  for (Connection& connection : connections_) connection.stop(Connection::Stop::kNow);
  if (!warned_ && now > drain_end_ + kStuckHandlerWarning && !connections_.empty()) {
    warned_ = true;
    log_warning("request handlers do not end", {{"connections", connections_.size()}});
  }
}

Task<void> TcpServer::accept_loop() {
  while (!stopping_) {
    auto [error] = co_await acceptor_.async_wait(tcp::acceptor::wait_read, kAwait);
    if (stopping_) co_return;
    if (!error && accept_pending()) continue;
    // The connection stays in the backlog and the listener readable: without a pause this would
    // spin.
    back_off_.expires_after(kAcceptBackOff);
    co_await back_off_.async_wait(kAwait);
  }
}

bool TcpServer::accept_pending() {
  for (size_t i = 0; i < kAcceptsPerTurn; ++i) {
    Fd fd(accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      out_of_resources_ = false;
      if (auto configured = configure(fd.get()); configured.ok())
        admit(std::move(fd), "");
      else
        log_warning("connection dropped", {configured.error()});
      continue;
    }
    int why = errno;
    if (why == EAGAIN) return true;
    if (why == EMFILE || why == ENFILE || why == ENOBUFS || why == ENOMEM) {
      // Without a descriptor the kernel says so also when nobody waits.
      if (!is_readable(acceptor_.native_handle())) return true;
      if (!out_of_resources_) log_error("accept", {Error::from_errno("accept", why)});
      out_of_resources_ = true;
      places_.drop(kAcceptsPerTurn);
      return false;
    }
    // Everything else (ECONNABORTED, and what Linux reports of the new socket) concerns one peer
    // only.
  }
  return true;
}

void TcpServer::admit(Fd fd, std::string peer) {
  if (stopping_) return;
  tcp::socket socket(acceptor_.get_executor());
  error_code error;
  socket.assign(endpoint_.protocol(), fd.get(), error);
  if (error) {
    log_warning("connection dropped", {{"error", std::string_view(error.message())}});
    return;
  }
  // The socket owns the number from here on.
  static_cast<void>(fd.release());
  if (peer.empty()) peer = network_of_peer(socket);
  auto connection = connections_.emplace(connections_.end(), std::move(socket), rules_);
  auto leave = [connection] { connection->stop(Connection::Stop::kNow); };
  auto place = places_.take(peer, std::move(leave));
  if (!place && refusals_ >= kMaxRefusals) return connections_.pop_back();
  if (!place) ++refusals_;
  connection->set_peer(std::move(peer), std::move(place));
  // run() sleeps without end while there are no connections.
  if (connections_.size() == 1) wake_.cancel();
  auto ended = [this, connection](std::exception_ptr thrown) {
    if (thrown) log_error("connection ended by an exception");
    // Not removed here: the cancellation slot that co_spawn still looks at lives in the connection.
    asio::post(acceptor_.get_executor(), [this, connection] { remove(connection); });
  };
  asio::co_spawn(acceptor_.get_executor(), connection->run(),
                 asio::bind_cancellation_slot(connection->cancellation_slot(), ended));
}

void TcpServer::remove(Connections::iterator connection) {
  if (connection->purpose() == Connection::Purpose::kRefuse) --refusals_;
  connections_.erase(connection);
  if (stopping_) wake_.cancel();
}

}  // namespace

void adopt(Server& server, Fd socket, std::string peer) {
  static_cast<TcpServer&>(server).admit(std::move(socket), std::move(peer));
}

Result<std::unique_ptr<Server>> Server::listen(asio::io_context& context,
                                               const std::string& address, unsigned short port,
                                               Rules rules) {
  error_code error;
  std::string what = "listen on " + address + " port " + std::to_string(port);
  asio::ip::address parsed = asio::ip::make_address(address, error);
  if (error) return Error(Code::kInvalid, what + ": not an IP address");
  tcp::endpoint endpoint(parsed, port);
  auto fd = open_listener(endpoint);
  if (!fd.ok()) return std::move(fd).error().with_context(what);
  tcp::acceptor acceptor(context);
  acceptor.assign(endpoint.protocol(), fd->get(), error);
  if (error) return Error(Code::kSystem, what + ": " + error.message(), error.value());
  static_cast<void>(fd->release());
  tcp::endpoint bound = acceptor.local_endpoint(error);
  if (error) return Error(Code::kSystem, what + ": " + error.message(), error.value());
  return std::unique_ptr<Server>(
      std::make_unique<TcpServer>(context, std::move(acceptor), bound, std::move(rules)));
}

}  // namespace atl::http
