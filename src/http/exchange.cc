#include "http/exchange.h"

#include <algorithm>

#include "http/connection.h"

namespace atl::http {
namespace {

constexpr int kSwitchingProtocols = 101;
constexpr size_t kBodyStepBytes = 16 * 1024;
constexpr std::string_view kEventComment = ":\n\n";

void append_lines(std::string& out, std::string_view data) {
  for (;;) {
    size_t end = data.find_first_of("\r\n");
    out.append("data: ").append(data.substr(0, end)).append("\n");
    if (end == std::string_view::npos) return;
    bool crlf = data.substr(end, 2) == "\r\n";
    data.remove_prefix(end + (crlf ? 2 : 1));
  }
}

bool is_one_line(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

}  // namespace

Exchange::Exchange(Connection& connection, Request request)
    : connection_(connection), request_(std::move(request)) {}

const std::string& Exchange::peer_network() const { return connection_.peer_network(); }

void set_known(Exchange& exchange) { exchange.connection_.set_known(); }

bool Exchange::peer_gone() const { return connection_.is_broken(); }

Task<Result<std::string>> Exchange::read_body(size_t limit) {
  std::optional<uint64_t> claimed = connection_.body_bytes_left();
  if (claimed == 0) co_return std::string();
  if (claimed && *claimed > limit) {
    co_return Error(Code::kExhausted, "read body: more than " + std::to_string(limit) + " bytes");
  }
  std::string body;
  size_t filled = 0;
  for (;;) {
    // One byte over the limit is enough to know.
    size_t step = std::min<uint64_t>(kBodyStepBytes, claimed.value_or(kBodyStepBytes));
    body.resize(filled + std::min(std::max<size_t>(step, 1), limit - filled + 1));
    std::span<char> into(body.data() + filled, body.size() - filled);
    auto count = co_await connection_.read_body_some(into, Connection::BodyTime::kWhole);
    if (!count.ok()) co_return std::move(count).error();
    if (*count == 0) break;
    filled += *count;
    if (filled > limit) {
      co_return Error(Code::kExhausted, "read body: more than " + std::to_string(limit) + " bytes");
    }
  }
  body.resize(filled);
  body.shrink_to_fit();  // its handler may hold it for long
  co_return body;
}

Task<Result<size_t>> Exchange::read_body_some(std::span<char> into) {
  return connection_.read_body_some(into);
}

Task<Result<void>> Exchange::reply(Response response) {
  int status = response.status;
  auto sent = co_await connection_.send(request_.method, std::move(response));
  if (sent) status_ = status;
  co_return sent;
}

Task<Result<void>> Exchange::start_stream(int status, Headers headers, std::string_view comment,
                                          std::string_view first) {
  Connection::StreamStart start{request_.method, status, comment, first};
  auto started = co_await connection_.start_stream(start, std::move(headers));
  if (started) status_ = status;
  co_return started;
}

Task<Result<void>> Exchange::write(std::string_view bytes) { return connection_.write(bytes); }

Task<Result<void>> Exchange::finish(std::string_view last) { return connection_.finish(last); }

Exchange::PeerWatch::PeerWatch(Connection& connection) : connection_(connection) {
  connection_.watch_peer([this] { gone_ = true; });
}

Exchange::PeerWatch::~PeerWatch() { connection_.watch_peer(nullptr); }

bool Exchange::wants_web_socket() const {
  return request_.method == Method::kGet && connection_.speaks_http_1_1() &&
         request_.headers.lists("connection", "upgrade") &&
         request_.headers.lists("upgrade", "websocket");
}

Task<Result<std::unique_ptr<WebSocket>>> Exchange::accept_web_socket() {
  if (!wants_web_socket()) {
    co_return Error(Code::kInvalid, "the request does not ask for a WebSocket");
  }
  auto web_socket = co_await connection_.upgrade(request_);
  if (web_socket) status_ = kSwitchingProtocols;
  co_return web_socket;
}

Task<Result<std::unique_ptr<Tunnel>>> Exchange::switch_protocols(Headers headers) {
  auto tunnel = co_await connection_.switch_protocols(std::move(headers));
  if (tunnel) status_ = kSwitchingProtocols;
  co_return tunnel;
}

std::string format_event(const ServerSentEvent& event) {
  ATOLL_CHECK(is_one_line(event.id) && is_one_line(event.event));
  std::string out;
  out.reserve(event.data.size() + 64);
  if (!event.id.empty()) out.append("id: ").append(event.id).append("\n");
  if (!event.event.empty()) out.append("event: ").append(event.event).append("\n");
  append_lines(out, event.data);
  out.append("\n");
  return out;
}

Task<Result<void>> start_events(Exchange& exchange, Headers headers) {
  // Always UTF-8, but clients take text without a word about it for Latin-1.
  headers.add("Content-Type", "text/event-stream; charset=utf-8");
  headers.add("Cache-Control", "no-store");
  // nginx would otherwise collect events in its buffer.
  headers.add("X-Accel-Buffering", "no");
  auto started = co_await exchange.start_stream(200, std::move(headers), kEventComment);
  co_return started;
}

}  // namespace atl::http
