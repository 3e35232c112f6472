#include "http/relay.h"

#include <array>
#include <charconv>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include "http/head.h"
#include "http/parser.h"
#include "http/tunnel.h"
#include "http/wire.h"

namespace atl::http {
namespace {

namespace asio = boost::asio;

constexpr size_t kMaxHeaderBytes = 64 * 1024;
constexpr size_t kStepBytes = 32 * 1024;

constexpr std::string_view kHopFields[] = {
    "connection",          "keep-alive",        "proxy-connection",
    "proxy-authenticate",  "transfer-encoding", "te",
    "proxy-authorization", "trailer",           "upgrade"};
// What a request must not tell the other server.
constexpr std::string_view kPrivateFields[] = {"host",   "authorization",    "cookie",
                                               "expect", "atoll-generation", "idempotency-key"};
// What the other server must not tell the client's browser.
constexpr std::string_view kForeignFields[] = {"set-cookie", "set-cookie2", "clear-site-data",
                                               "service-worker-allowed"};

template <typename List>
bool holds(const List& list, std::string_view name) {
  for (std::string_view entry : list)
    if (equal_ignoring_case(entry, name)) return true;
  return false;
}

template <typename List>
Headers passed_on(const Headers& given, const List& withheld) {
  Headers passed;
  for (const auto& [name, value] : given.fields()) {
    // Fields that Connection names concern one hop too.
    if (holds(kHopFields, name) || holds(withheld, name) || given.lists("connection", name))
      continue;
    passed.add(name, value);
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

Task<void> send_body(Exchange& exchange, Upstream& upstream, Body body) {
  auto as_values = asio::this_coro::throw_if_cancelled(false);
  co_await as_values;
  std::string piece(kStepBytes, '\0');
  for (;;) {
    std::span<char> into(piece);
    auto count = co_await exchange.read_body_some(into);
    if (!count) co_return;
    bool end = *count == 0;
    if (end && body == Body::kLength) co_return;
    std::string_view bytes = std::string_view(piece).substr(0, *count);
    std::string wire = body == Body::kChunked ? as_chunk(bytes) : std::string(bytes);
    auto written = co_await upstream.write(wire);
    if (!written || end) co_return;
  }
}

Task<void> send_raw(Tunnel& client, Upstream& upstream) {
  auto as_values = asio::this_coro::throw_if_cancelled(false);
  co_await as_values;
  for (;;) {
    auto bytes = co_await client.read();
    // Whether the client ended its side or went away: the other server learns it as an end.
    if (!bytes || bytes->empty()) {
      upstream.end_writing();
      co_return;
    }
    auto written = co_await upstream.write(*bytes);
    if (!written) co_return;
  }
}

// The answer as it comes from the other server.
class Answer {
 public:
  Answer(Upstream& upstream, Method method) : upstream_(upstream), method_(method) {}

  Task<Result<void>> read_header() {
    do {
      parser_.emplace();
      HeaderScanner scanner;
      size_t length = 0;
      while (length == 0) {
        auto scanned = scanner.scan(input_);
        if (!scanned) co_return Error(Code::kCorrupt, scanned.error().message());
        length = *scanned;
        if (length > 0) break;
        if (input_.size() > kMaxHeaderBytes) co_return Error(Code::kCorrupt, "endless header");
        ATOLL_CO_TRY(bool more, co_await receive());
        if (!more) co_return Error(Code::kCorrupt, "the connection ended before an answer");
      }
      auto parsed = parser_->parse_header(std::string_view(input_).substr(0, length), method_);
      if (!parsed) co_return std::move(parsed).error();
      input_.erase(0, length);
      // 100 Continue and its like come before the answer.
    } while (parser_->status() / 100 == 1 && parser_->status() != 101);
    headers_ = parser_->take_headers();
    co_return Result<void>();
  }

  int status() const { return parser_->status(); }
  const Headers& headers() const { return headers_; }
  // What came behind the header of an upgrade.
  std::string take_rest() { return std::move(input_); }

  // The next part of the body; empty at its end.
  Task<Result<std::string_view>> read_body() {
    while (!parser_->body_done()) {
      auto decoded = parser_->decode(input_, std::span<char>(piece_));
      if (!decoded) co_return std::move(decoded).error();
      input_.erase(0, decoded->consumed);
      if (decoded->produced > 0) co_return std::string_view(piece_).substr(0, decoded->produced);
      if (parser_->body_done()) break;
      if (input_.size() > kMaxHeaderBytes) co_return Error(Code::kCorrupt, "bad chunk");
      ATOLL_CO_TRY(bool more, co_await receive());
      if (more) continue;
      auto finished = parser_->finish();
      if (!finished) co_return std::move(finished).error();
      break;
    }
    co_return std::string_view();
  }

 private:
  Task<Result<bool>> receive() {
    ATOLL_CO_TRY(std::string bytes, co_await upstream_.read());
    input_ += bytes;
    co_return !bytes.empty();
  }

  Upstream& upstream_;
  Method method_;
  std::optional<ResponseParser> parser_;
  Headers headers_;
  std::string input_;
  std::string piece_ = std::string(kStepBytes, '\0');
};

Task<Result<void>> send_answer(Exchange& exchange, Answer& answer, const Headers& added) {
  Headers headers = passed_on(answer.headers(), kForeignFields);
  add_all(headers, added);
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

Task<Result<void>> carry(Exchange& exchange, Upstream& upstream, Answer& answer) {
  Headers headers = passed_on(answer.headers(), kForeignFields);
  auto protocol = answer.headers().find("upgrade");
  if (protocol) headers.add("Upgrade", std::string(*protocol));
  ATOLL_CO_TRY(auto client, co_await exchange.switch_protocols(std::move(headers)));
  auto executor = co_await asio::this_coro::executor;
  SideTask sending(executor);
  sending.start(send_raw(*client, upstream));
  std::string bytes = answer.take_rest();
  for (;;) {
    if (!bytes.empty()) {
      auto written = co_await client->write(bytes);
      if (!written) break;
    }
    auto more = co_await upstream.read();
    if (!more || more->empty()) break;
    bytes = std::move(*more);
  }
  upstream.close();
  co_await sending.stop();
  co_return Result<void>();
}

Result<std::string> request_head(const Exchange& exchange, const RelayRequest& relayed, Body body) {
  const Request& request = exchange.request();
  Headers headers = passed_on(request.headers, kPrivateFields);
  add_all(headers, relayed.for_upstream);
  RequestHead head{.method = request.method,
                   .target = relayed.target,
                   .host = relayed.host,
                   .body_bytes = content_length(request.headers).value_or(0),
                   .framing = body == Body::kChunked ? Framing::kChunked : Framing::kLength,
                   .connection = "close"};
  std::string protocol;
  if (auto upgrade = request.headers.find("upgrade");
      upgrade && request.headers.lists("connection", "upgrade")) {
    headers.add("Upgrade", std::string(*upgrade));
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
  SideTask sending(executor);
  if (body != Body::kNone) sending.start(send_body(exchange, upstream, body));
  Answer answer(upstream, exchange.request().method);
  auto read = co_await answer.read_header();
  Result<void> done = std::move(read);
  if (done && answer.status() == 101) {
    done = co_await carry(exchange, upstream, answer);
  } else if (done) {
    done = co_await send_answer(exchange, answer, request.for_client);
  }
  upstream.close();
  co_await sending.stop();
  co_return done;
}

}  // namespace atl::http
