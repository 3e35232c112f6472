#include "http/relay.h"

#include <array>
#include <charconv>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include "http/head.h"
#include "http/relayed_answer.h"
#include "http/tunnel.h"
#include "http/wire.h"

namespace atl::http {
namespace {

namespace asio = boost::asio;

constexpr size_t kStepBytes = 32 * 1024;

constexpr std::string_view kHopFields[] = {
    "connection",          "keep-alive",        "proxy-connection",
    "proxy-authenticate",  "transfer-encoding", "te",
    "proxy-authorization", "trailer",           "upgrade"};
// What a request must not tell the other server.
constexpr std::string_view kPrivateFields[] = {"host",   "authorization",    "cookie",
                                               "expect", "atoll-generation", "idempotency-key"};
// What the other server must not tell the client's browser, not of an origin of its own either:
// cookies go to other hosts of the domain too.
constexpr std::string_view kForeignFields[] = {"set-cookie", "set-cookie2", "clear-site-data",
                                               "service-worker-allowed"};
// Where the origin is shared, all that it may say: about the answer, nothing about the origin
// (Alt-Svc, Strict-Transport-Security, NEL, Access-Control-…) and nothing to a proxy on the way
// (X-Accel-Redirect, X-Sendfile).
constexpr std::string_view kOwnFields[] = {"accept-patch",
                                           "accept-post",
                                           "accept-ranges",
                                           "age",
                                           "allow",
                                           "cache-control",
                                           "content-disposition",
                                           "content-encoding",
                                           "content-language",
                                           "content-length",
                                           "content-location",
                                           "content-range",
                                           "content-security-policy",
                                           "content-type",
                                           "date",
                                           "etag",
                                           "expires",
                                           "last-modified",
                                           "link",
                                           "location",
                                           "mcp-protocol-version",
                                           "mcp-session-id",
                                           "preference-applied",
                                           "retry-after",
                                           "sec-websocket-accept",
                                           "sec-websocket-extensions",
                                           "sec-websocket-protocol",
                                           "sec-websocket-version",
                                           "server",
                                           "vary",
                                           "x-accel-buffering",
                                           "x-content-type-options",
                                           "x-correlation-id",
                                           "x-frame-options",
                                           "x-request-id",
                                           "x-total-count"};

template <typename List>
bool holds(const List& list, std::string_view name) {
  for (std::string_view entry : list)
    if (equal_ignoring_case(entry, name)) return true;
  return false;
}

// Fields that Connection names concern one hop too.
bool is_of_one_hop(const Headers& given, std::string_view name) {
  return holds(kHopFields, name) || given.lists("connection", name);
}

Headers to_upstream(const Headers& given) {
  Headers passed;
  for (const auto& [name, value] : given.fields())
    if (!is_of_one_hop(given, name) && !holds(kPrivateFields, name)) passed.add(name, value);
  return passed;
}

Headers to_client(const Headers& given, Origin origin) {
  Headers passed;
  for (const auto& [name, value] : given.fields()) {
    bool may_pass =
        origin == Origin::kShared ? holds(kOwnFields, name) : !holds(kForeignFields, name);
    if (may_pass && !is_of_one_hop(given, name)) passed.add(name, value);
  }
  return passed;
}

void add_all(Headers& headers, const Headers& more) {
  for (const auto& [name, value] : more.fields()) headers.add(name, value);
}

enum class Body : unsigned char { kNone, kLength, kChunked };

Body body_of(const Request& request) {
  if (request.headers.count("transfer-encoding") > 0) return Body::kChunked;
  return content_length(request.headers).value_or(0) > 0 ? Body::kLength : Body::kNone;
}

std::string as_chunk(std::string_view bytes) {
  std::array<char, 16> mark;
  char* end = std::to_chars(mark.data(), mark.data() + mark.size(), bytes.size(), 16).ptr;
  std::string chunk(mark.data(), end);
  chunk.append("\r\n").append(bytes).append("\r\n");
  return chunk;
}

// One direction, beside the other one that the handler itself carries.
class SideTask {
 public:
  explicit SideTask(asio::any_io_executor executor)
      : executor_(std::move(executor)), ended_(executor_, SteadyTime::max()) {}

  void start(Task<void> task) {
    running_ = true;
    auto end = [this](std::exception_ptr) {
      running_ = false;
      ended_.cancel();
    };
    asio::co_spawn(executor_, std::move(task),
                   asio::bind_cancellation_slot(stop_.slot(), std::move(end)));
  }

  // Whatever it waits for is over; the upstream was closed before.
  Task<void> stop() {
    auto as_values = asio::this_coro::throw_if_cancelled(false);
    co_await as_values;
    while (running_) {
      stop_.emit(asio::cancellation_type::terminal);
      if (!running_) co_return;
      co_await ended_.async_wait(kAwait);
    }
  }

 private:
  asio::any_io_executor executor_;
  asio::steady_timer ended_;
  asio::cancellation_signal stop_;
  bool running_ = false;
};

// Hands the body on and then watches the client until it is stopped: with the client gone, nobody
// is left for what the relay waits for. A body that does not come closes the upstream.
Task<void> send_body(Exchange& exchange, Upstream& upstream, Body body,
                     std::optional<Error>& failure) {
  auto as_values = asio::this_coro::throw_if_cancelled(false);
  co_await as_values;
  std::string piece(body == Body::kNone ? 0 : kStepBytes, '\0');
  for (bool end = body == Body::kNone; !end;) {
    std::span<char> into(piece);
    auto count = co_await exchange.read_body_some(into);
    if (!count) {
      failure = std::move(count).error().with_field("body");
      co_return upstream.close();
    }
    end = *count == 0;
    if (end && body == Body::kLength) break;
    std::string_view bytes = std::string_view(piece).substr(0, *count);
    std::string wire = body == Body::kChunked ? as_chunk(bytes) : std::string(bytes);
    auto written = co_await upstream.write(wire);
    // The other server takes no more: it may have answered all the same.
    if (!written) co_return;
  }
  std::string().swap(piece);
  auto watch = exchange.watch_peer();
  if (watch.gone()) co_return upstream.close();
  auto executor = co_await asio::this_coro::executor;
  asio::steady_timer stopped(executor, SteadyTime::max());
  co_await stopped.async_wait(kAwait);
}

// Since when the other server has said nothing, as far as somebody listens.
struct Silence {
  SteadyTime since = std::chrono::steady_clock::now();
  bool listening = false;
};

// Whether a client that ended its side still reads is not to be seen: only what the other server
// still says keeps the tunnel open.
Task<void> close_when_silent(Upstream& upstream, Silence& silence,
                             std::chrono::milliseconds patience) {
  auto executor = co_await asio::this_coro::executor;
  asio::steady_timer timer(executor);
  for (;;) {
    timer.expires_at(silence.since + patience);
    auto [stopped] = co_await timer.async_wait(kAwait);
    if (stopped) co_return;
    SteadyTime now = std::chrono::steady_clock::now();
    if (!silence.listening) silence.since = now;
    if (now >= silence.since + patience) co_return upstream.close();
  }
}

Task<void> send_raw(Tunnel& client, Upstream& upstream, Silence& silence,
                    std::chrono::milliseconds patience) {
  auto as_values = asio::this_coro::throw_if_cancelled(false);
  co_await as_values;
  for (;;) {
    auto bytes = co_await client.read();
    if (!bytes) co_return upstream.close();
    if (bytes->empty()) break;
    auto written = co_await upstream.write(*bytes);
    if (!written) co_return;
  }
  upstream.end_writing();
  co_await close_when_silent(upstream, silence, patience);
}

Task<Result<void>> send_answer(Exchange& exchange, RelayedAnswer& answer,
                               const RelayRequest& request) {
  Headers headers = to_client(answer.headers(), request.origin);
  add_all(headers, request.for_client);
  ATOLL_CO_TRY_VOID(co_await exchange.start_stream(answer.status(), std::move(headers)));
  for (;;) {
    auto part = co_await answer.read_body();
    // Without finish() the connection is cut, so the client sees that the answer is not whole.
    if (!part) co_return Result<void>();
    if (part->empty()) break;
    auto written = co_await exchange.write(*part);
    if (!written) co_return Result<void>();
  }
  [[maybe_unused]] auto finished = co_await exchange.finish();
  co_return Result<void>();
}

Task<Result<void>> carry(Exchange& exchange, Upstream& upstream, RelayedAnswer& answer,
                         const RelayRequest& request) {
  Headers headers = to_client(answer.headers(), request.origin);
  auto protocol = answer.headers().find("upgrade");
  if (protocol) headers.add("Upgrade", std::string(*protocol));
  ATOLL_CO_TRY(auto client, co_await exchange.switch_protocols(std::move(headers)));
  auto executor = co_await asio::this_coro::executor;
  Silence silence;
  SideTask sending(executor);
  sending.start(send_raw(*client, upstream, silence, request.end_patience));
  std::string bytes = answer.take_rest();
  for (;;) {
    if (!bytes.empty()) {
      auto written = co_await client->write(bytes);
      if (!written) break;
    }
    silence = {.listening = true};
    auto more = co_await upstream.read();
    silence.listening = false;
    if (!more || more->empty()) break;
    bytes = std::move(*more);
  }
  upstream.close();
  co_await sending.stop();
  co_return Result<void>();
}

bool wants_upgrade(const Request& request) {
  return request.headers.find("upgrade") && request.headers.lists("connection", "upgrade");
}

Result<std::string> request_head(const Exchange& exchange, const RelayRequest& relayed, Body body) {
  const Request& request = exchange.request();
  Headers headers = to_upstream(request.headers);
  add_all(headers, relayed.for_upstream);
  RequestHead head{.method = request.method,
                   .target = relayed.target,
                   .host = relayed.host,
                   .body_bytes = content_length(request.headers).value_or(0),
                   .framing = body == Body::kChunked ? Framing::kChunked : Framing::kLength,
                   .connection = "close"};
  if (wants_upgrade(request)) {
    headers.add("Upgrade", std::string(*request.headers.find("upgrade")));
    head.connection = "upgrade";
  }
  return format_request_head(head, headers);
}

}  // namespace

Task<Result<void>> relay(Exchange& exchange, Upstream& upstream, RelayRequest request) {
  Body body = body_of(exchange.request());
  ATOLL_CO_TRY(std::string head, request_head(exchange, request, body));
  ATOLL_CO_TRY_VOID(co_await upstream.write(head));
  auto executor = co_await asio::this_coro::executor;
  std::optional<Error> bad_body;
  SideTask sending(executor);
  sending.start(send_body(exchange, upstream, body, bad_body));
  RelayedAnswer answer(upstream, exchange.request().method);
  auto read = co_await answer.read_header();
  Result<void> done = std::move(read);
  bool upgraded = done && answer.status() == 101;
  if (upgraded && !wants_upgrade(exchange.request())) {
    done = Error(Code::kCorrupt, "an upgrade that nobody asked for");
  } else if (upgraded) {
    co_await sending.stop();  // from now on the tunnel reads from the client
    done = co_await carry(exchange, upstream, answer, request);
  } else if (done) {
    done = co_await send_answer(exchange, answer, request);
  }
  upstream.close();
  co_await sending.stop();
  if (!done && bad_body) co_return *bad_body;
  co_return done;
}

}  // namespace atl::http
