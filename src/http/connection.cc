#include "http/connection.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>

#include <boost/asio/this_coro.hpp>

#include "base/log.h"
#include "http/web_socket_stream.h"

namespace atl::http {
namespace {

namespace asio = boost::asio;

constexpr size_t kFirstInputBytes = 2048;
constexpr size_t kMaxIdleInputBytes = 4096;
constexpr size_t kMaxBodyInputBytes = 64 * 1024;
constexpr size_t kMaxDrainBytes = 64 * 1024;
constexpr size_t kDrainStepBytes = 4096;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::string_view kLastChunk = "0\r\n\r\n";

SteadyTime from_now(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

asio::const_buffer to_buffer(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

std::string chunk_mark(size_t bytes) {
  std::array<char, 20> mark;
  char* end = std::to_chars(mark.data(), mark.data() + 16, bytes, 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  return std::string(mark.data(), end);
}

bool has_no_body(int status) { return status / 100 == 1 || status == 204 || status == 304; }

}  // namespace

Task<void> Connection::run() {
  // Otherwise every co_await after a cancellation throws; here errors are values.
  auto as_values = asio::this_coro::throw_if_cancelled(false);
  co_await as_values;
  if (purpose() == Purpose::kRefuse) {
    Refused refused{503, "too many connections"};
    co_await refuse(std::move(refused));
    co_return;
  }
  bool again = true;
  while (again) again = co_await serve_one();
}

void Connection::stop(Stop how) {
  if (how == Stop::kNow) return cancel();
  stopping_ = true;
  if (!handling_) wire_.interrupt();
}

void Connection::cancel() {
  wire_.interrupt();
  cancellation_.emit(asio::cancellation_type::terminal);
}

// True when another request may follow.
Task<bool> Connection::serve_one() {
  std::optional<size_t> header_bytes = co_await read_header();
  if (!header_bytes) co_return false;
  parser_.emplace();
  auto refused = parser_->parse_header(wire_.input().substr(0, *header_bytes));
  if (refused) {
    co_await refuse(std::move(*refused));
    co_return false;
  }
  wire_.consume(*header_bytes);
  owes_continue_ = parser_->expects_continue();
  answer_ = Answer();
  next_comment_ = kNever;
  bad_body_.reset();
  body_deadline_ = kNever;
  Exchange exchange(*this, parser_->take_request());
  handling_ = true;
  place_->set_busy();
  co_await call_handler(exchange);
  place_->set_waiting();
  wire_.set_on_sweep(nullptr);
  bool again = co_await settle();
  handling_ = false;
  served_before_ = true;
  co_return again && !stopping_;
}

// The length of the header that input() starts with; nothing when the connection is to end.
Task<std::optional<size_t>> Connection::read_header() {
  HeaderScanner scanner;
  const Limits& limits = rules_.limits;
  bool waiting = wire_.input().empty();
  wire_.trim(kMaxIdleInputBytes);
  SteadyTime deadline = from_now(waiting && served_before_ ? limits.idle_time : limits.header_time);
  Refused refused{400, ""};
  for (;;) {
    auto length = scanner.scan(wire_.input());
    if (!length.ok()) {
      refused.reason = length.error().message();
      break;
    }
    // Behind a body there may be more in the buffer than a header may have.
    size_t least = *length > 0 ? *length : wire_.input().size() + 1;
    if (least > limits.header_bytes) {
      refused = Refused{431, "request header is too large"};
      break;
    }
    if (*length > 0) co_return *length;
    if (stopping_) co_return std::nullopt;
    size_t room = std::max(kFirstInputBytes, wire_.input().size() * 2);
    auto count = co_await wire_.read_more(deadline, std::min(room, limits.header_bytes));
    if (!count.ok() && count.error().code() == Code::kTimeout && !waiting) {
      refused = Refused{408, "request header took too long"};
      break;
    }
    if (!count.ok() || *count == 0) co_return std::nullopt;
    // The time for a header is counted from its first byte, however slowly the others come.
    if (waiting) deadline = from_now(limits.header_time);
    waiting = false;
  }
  co_await refuse(std::move(refused));
  co_return std::nullopt;
}

Task<void> Connection::call_handler(Exchange& exchange) {
  std::string thrown;
  try {
    auto task = rules_.handler(exchange);
    co_await std::move(task);
  } catch (const std::exception& exception) {
    thrown = exception.what();
  } catch (...) {
    thrown = "not a std::exception";
  }
  if (!thrown.empty() && !wire_.interrupted()) {
    log_error("request handler threw", {{"what", std::string_view(thrown)}});
  }
}

// Makes the wire ready for the next request, or says that there cannot be one.
Task<bool> Connection::settle() {
  if (broken_ || wire_.interrupted()) co_return false;
  if (answer_.stage == Answer::Stage::kUpgraded) {
    co_await wire_.linger();
    co_return false;
  }
  if (answer_.stage == Answer::Stage::kNone) {
    log_error("request handler did not answer");
    Refused refused{500, "the request was not answered"};
    co_await refuse(std::move(refused));
    co_return false;
  }
  // Closing without the last chunk is how the peer learns that the answer is not whole.
  if (answer_.stage == Answer::Stage::kBody) {
    log_error("request handler did not finish its answer");
    co_return false;
  }
  bool drained = co_await drain_body();
  if (drained && answer_.after == After::kKeepAlive && !stopping_) co_return true;
  co_await wire_.linger();
  co_return false;
}

Task<bool> Connection::drain_body() {
  if (parser_->body_done()) co_return true;
  // A peer that still waits for "100 Continue" may send its body or not: what follows is ambiguous.
  if (owes_continue_ || answer_.after == After::kClose) co_return false;
  std::array<char, kDrainStepBytes> scrap;
  size_t total = 0;
  while (total <= kMaxDrainBytes) {
    std::span<char> into(scrap);
    auto count = co_await read_body_some(into);
    if (!count.ok()) co_return false;
    if (*count == 0) co_return true;
    total += *count;
  }
  co_return false;
}

Task<void> Connection::refuse(Refused refused) {
  Response response = rules_.refusal(refused.status, refused.reason);
  ResponseHead head{.status = response.status,
                    .framing = Framing::kLength,
                    .body_bytes = response.body.size(),
                    .after = After::kClose};
  auto text = format_response_head(head, response.headers);
  if (!text.ok()) {
    log_error("refusal cannot be sent", {text.error()});
    co_return;
  }
  Wire::Parts parts{to_buffer(*text), to_buffer(response.body)};
  auto written = co_await wire_.write(parts, rules_.limits.header_time);
  // The peer has gone without its answer: nobody is left to tell.
  if (!written.ok()) co_return;
  co_await wire_.linger();
}

Task<Result<size_t>> Connection::read_body_some(std::span<char> into, BodyTime time) {
  if (time == BodyTime::kWhole && body_deadline_ == kNever)
    body_deadline_ = from_now(rules_.limits.whole_body_time);
  ATOLL_CHECK(!into.empty());
  for (;;) {
    if (broken_) co_return *broken_;
    if (bad_body_) co_return *bad_body_;
    if (parser_->body_done()) co_return size_t{0};
    auto decoded = parser_->decode(wire_.input(), into);
    if (!decoded.ok()) {
      bad_body_ = std::move(decoded).error();
      continue;
    }
    wire_.consume(decoded->consumed);
    if (decoded->produced > 0) co_return decoded->produced;
    if (parser_->body_done()) co_return size_t{0};
    ATOLL_CO_TRY_VOID(co_await receive_body());
  }
}

std::optional<uint64_t> Connection::body_bytes_left() const {
  return parser_->body_done() ? 0 : parser_->body_bytes_left();
}

Task<Result<size_t>> Connection::receive_body() {
  if (owes_continue_ && answer_.stage == Answer::Stage::kNone) {
    Wire::Parts parts{to_buffer(kContinue)};
    auto written = co_await wire_.write(parts, rules_.limits.write_time);
    if (!written.ok()) co_return fail(std::move(written).error());
  }
  owes_continue_ = false;
  uint64_t left = parser_->body_bytes_left().value_or(kMaxBodyInputBytes);
  size_t room = std::clamp<uint64_t>(left, kFirstInputBytes, kMaxBodyInputBytes);
  SteadyTime deadline = std::min(from_now(rules_.limits.body_time), body_deadline_);
  auto count = co_await wire_.read_more(deadline, room);
  if (!count.ok() && count.error().code() == Code::kTimeout) {
    bad_body_ = count.error();
    co_return *bad_body_;
  }
  if (!count.ok()) co_return fail(std::move(count).error());
  if (*count == 0) {
    co_return fail(Error(Code::kCancelled, "read body: peer closed before its end"));
  }
  co_return *count;
}

After Connection::after_answer(const Headers& headers) const {
  if (!parser_->keep_alive() || stopping_ || bad_body_ || headers.lists("connection", "close")) {
    return After::kClose;
  }
  if (parser_->body_done()) return After::kKeepAlive;
  bool too_long = parser_->body_bytes_left().value_or(0) > kMaxDrainBytes;
  return owes_continue_ || too_long ? After::kClose : After::kKeepAlive;
}

// The head of the answer; without `body_bytes` the length is not known yet.
Result<std::string> Connection::begin_answer(Method request_method, int status,
                                             const Headers& headers,
                                             std::optional<uint64_t> body_bytes) {
  if (broken_) return *broken_;
  if (answer_.stage != Answer::Stage::kNone) {
    return Error(Code::kConflict, "answer: the request is already answered");
  }
  Answer answer;
  answer.after = after_answer(headers);
  answer.discard_body = request_method == Method::kHead || has_no_body(status);
  answer.body_bytes_left = body_bytes.value_or(0);
  if (has_no_body(status)) {
    answer.framing = Framing::kNone;
  } else if (body_bytes) {
    answer.framing = Framing::kLength;
  } else if (speaks_http_1_1()) {
    answer.framing = Framing::kChunked;
  } else {
    answer.framing = Framing::kUntilClose;
    answer.after = After::kClose;
  }
  ResponseHead head{.status = status,
                    .framing = answer.framing,
                    .body_bytes = answer.body_bytes_left,
                    .after = answer.after};
  ATOLL_TRY(std::string text, format_response_head(head, headers));
  answer.stage = Answer::Stage::kBody;
  answer_ = answer;
  return text;
}

Task<Result<void>> Connection::send(Method request_method, Response response) {
  uint64_t body_bytes = response.body.size();
  // A handler of HEAD knows the length without having the body.
  if (request_method == Method::kHead && body_bytes == 0) {
    body_bytes = content_length(response.headers).value_or(0);
  }
  auto head = begin_answer(request_method, response.status, response.headers, body_bytes);
  if (!head.ok()) co_return std::move(head).error();
  Wire::Parts parts{to_buffer(*head)};
  if (!answer_.discard_body) parts[1] = to_buffer(response.body);
  auto written = co_await wire_.write(parts, rules_.limits.write_time);
  if (!written.ok()) co_return fail(std::move(written).error());
  answer_.stage = Answer::Stage::kDone;
  co_return Result<void>();
}

Task<Result<void>> Connection::start_stream(StreamStart start, Headers headers) {
  auto head = begin_answer(start.request_method, start.status, headers, content_length(headers));
  if (!head.ok()) co_return std::move(head).error();
  // Those that follow a stream will not send soon.
  wire_.trim(0);
  if (!start.comment.empty()) {
    next_comment_ = from_now(rules_.limits.comment_time);
    std::string_view comment = start.comment;
    wire_.set_on_sweep([this, comment](SteadyTime now) { write_comment(now, comment); });
  }
  auto first = framed(start.first);
  if (!first.ok()) co_return std::move(first).error();
  Wire::Parts parts{to_buffer(*head), to_buffer(*first)};
  auto written = co_await wire_.write(parts, rules_.limits.write_time);
  if (!written.ok()) co_return fail(std::move(written).error());
  co_return Result<void>();
}

Result<std::string> Connection::framed(std::string_view bytes) {
  // An empty chunk would end the stream.
  if (bytes.empty() || answer_.discard_body) return std::string();
  if (answer_.framing == Framing::kChunked)
    return chunk_mark(bytes.size()) + std::string(bytes) + "\r\n";
  if (answer_.framing == Framing::kLength) {
    if (bytes.size() > answer_.body_bytes_left)
      return Error(Code::kInvalid, "write: more than the promised Content-Length");
    answer_.body_bytes_left -= bytes.size();
  }
  return std::string(bytes);
}

Task<Result<void>> Connection::write(std::string_view bytes) {
  if (broken_) co_return *broken_;
  if (answer_.stage != Answer::Stage::kBody) {
    co_return Error(Code::kConflict, "write: no stream was started");
  }
  // An empty chunk would end the stream.
  if (bytes.empty() || answer_.discard_body) co_return Result<void>();
  if (next_comment_ != kNever) next_comment_ = from_now(rules_.limits.comment_time);
  Wire::Parts parts{to_buffer(bytes)};
  std::string mark;
  if (answer_.framing == Framing::kLength) {
    if (bytes.size() > answer_.body_bytes_left) {
      co_return Error(Code::kInvalid, "write: more than the promised Content-Length");
    }
    answer_.body_bytes_left -= bytes.size();
  } else if (answer_.framing == Framing::kChunked) {
    mark = chunk_mark(bytes.size());
    parts[0] = to_buffer(mark);
    parts[1] = to_buffer(bytes);
    parts[2] = to_buffer("\r\n");
  }
  auto written = co_await wire_.write(parts, rules_.limits.write_time);
  if (!written.ok()) co_return fail(std::move(written).error());
  co_return Result<void>();
}

Task<Result<void>> Connection::finish(std::string_view last) {
  if (broken_) co_return *broken_;
  if (answer_.stage != Answer::Stage::kBody) {
    co_return Error(Code::kConflict, "finish: no stream was started");
  }
  auto bytes = framed(last);
  if (!bytes.ok()) co_return std::move(bytes).error();
  if (answer_.framing == Framing::kLength && answer_.body_bytes_left > 0 && !answer_.discard_body) {
    co_return Error(Code::kInvalid, "finish: less than the promised Content-Length");
  }
  if (answer_.framing == Framing::kChunked && !answer_.discard_body) bytes->append(kLastChunk);
  if (!bytes->empty()) {
    Wire::Parts parts{to_buffer(*bytes)};
    auto written = co_await wire_.write(parts, rules_.limits.write_time);
    if (!written.ok()) co_return fail(std::move(written).error());
  }
  answer_.stage = Answer::Stage::kDone;
  co_return Result<void>();
}

Task<Result<std::unique_ptr<WebSocket>>> Connection::upgrade(const Request& request) {
  if (broken_) co_return *broken_;
  if (answer_.stage != Answer::Stage::kNone) {
    co_return Error(Code::kConflict, "upgrade: the request is already answered");
  }
  if (!parser_->body_done()) co_return Error(Code::kInvalid, "upgrade: the request has a body");
  auto web_socket = co_await http::upgrade(wire_, request, rules_.limits);
  if (web_socket.ok()) {
    answer_.stage = Answer::Stage::kUpgraded;
  } else if (web_socket.error().code() != Code::kInvalid) {
    broken_ = web_socket.error();
  }
  co_return web_socket;
}

Task<Result<std::unique_ptr<Tunnel>>> Connection::switch_protocols(Headers headers) {
  auto head = begin_answer(Method::kGet, 101, headers, std::nullopt);
  if (!head.ok()) co_return std::move(head).error();
  answer_.stage = Answer::Stage::kUpgraded;
  auto tunnel = std::make_unique<Tunnel>(wire_, rules_.limits.write_time);
  auto written = co_await tunnel->write(*head);
  if (!written.ok()) co_return fail(std::move(written).error());
  co_return tunnel;
}

void Connection::watch_peer(std::function<void()> on_gone) {
  if (!on_gone) return wire_.watch(nullptr);
  if (broken_ || wire_.interrupted()) return on_gone();
  wire_.watch([this, on_gone = std::move(on_gone)] {
    static_cast<void>(fail(Error(Code::kCancelled, "the peer has gone")));
    on_gone();
    cancellation_.emit(asio::cancellation_type::terminal);
  });
}

// Not by a timer and a coroutine of its own: thousands of followers wait at a time.
void Connection::write_comment(SteadyTime now, std::string_view text) {
  if (now < next_comment_ || wire_.is_writing() || answer_.stage != Answer::Stage::kBody) return;
  next_comment_ = now + rules_.limits.comment_time;
  if (answer_.discard_body || broken_) return;
  int fd = wire_.socket().native_handle();
  int unsent = 0;
  // With an empty queue the few bytes go whole; otherwise the peer is slow, not idle.
  if (ioctl(fd, SIOCOUTQ, &unsent) != 0 || unsent > 0) return;
  std::string chunk(text);
  if (answer_.framing == Framing::kChunked) chunk = chunk_mark(text.size()) + chunk + "\r\n";
  ssize_t sent = ::send(fd, chunk.data(), chunk.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(chunk.size())) return;
  static_cast<void>(fail(Error(Code::kCancelled, "write: the peer has gone")));
  cancellation_.emit(asio::cancellation_type::terminal);
}

Error Connection::fail(Error error) {
  if (!broken_) broken_ = error;
  return error;
}

}  // namespace atl::http
