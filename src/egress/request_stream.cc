#include "egress/request_stream.h"

#include <algorithm>
#include <charconv>

#include "http/head.h"

namespace atl::egress {
namespace {

constexpr unsigned kMaxSizeDigits = 8;

Error refused(std::string_view reason, const std::string& what) {
  return Error(Code::kDenied, what).with_reason(reason);
}

std::optional<unsigned> hex_value(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

std::string_view method_of(std::string_view head) { return head.substr(0, head.find(' ')); }

}  // namespace

Result<size_t> ChunkFraming::take(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && !done()) {
    if (state_ == State::kData) {
      auto data = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size() - taken));
      taken += data;
      left_ -= data;
      if (left_ == 0) state_ = State::kDataEnd;
      continue;
    }
    ATOLL_TRY_VOID(step(bytes[taken++]));
  }
  return taken;
}

Result<void> ChunkFraming::step(char c) {
  auto expect = [&](char wanted, State next) -> Result<void> {
    if (c != wanted) return refused("bad_http", "a chunk is not framed plainly");
    state_ = next;
    return {};
  };
  switch (state_) {
    case State::kFirstDigit:
    case State::kDigits: {
      if (c == '\r' && state_ == State::kDigits) return expect('\r', State::kSizeEnd);
      auto digit = hex_value(c);
      if (!digit || ++digits_ > kMaxSizeDigits)
        return refused("bad_http", "the size of a chunk is not plain");
      left_ = left_ * 16 + *digit;
      state_ = State::kDigits;
      return {};
    }
    case State::kSizeEnd:
      digits_ = 0;
      return expect('\n', left_ == 0 ? State::kLastEnd : State::kData);
    case State::kDataEnd:
      return expect('\r', State::kDataLineEnd);
    case State::kDataLineEnd:
      return expect('\n', State::kFirstDigit);
    case State::kLastEnd:
      return expect('\r', State::kLastLineEnd);
    case State::kLastLineEnd:
      return expect('\n', State::kDone);
    case State::kData:
    case State::kDone:
      break;
  }
  return refused("bad_http", "bytes behind a body");
}

Result<size_t> RequestStream::pass(std::string_view bytes) {
  size_t passed = 0;
  while (passed < bytes.size()) {
    ATOLL_TRY(Piece piece, pass_piece(bytes.substr(passed)));
    if (piece.bytes == 0) break;
    passed += piece.bytes;
  }
  return passed;
}

Result<RequestStream::Piece> RequestStream::pass_piece(std::string_view bytes) {
  if (bytes.empty()) return Piece{};
  if (chunks_) {
    ATOLL_TRY(size_t taken, chunks_->take(bytes));
    if (chunks_->done()) chunks_.reset();
    return Piece{.bytes = taken};
  }
  if (body_left_ > 0) {
    auto taken = static_cast<size_t>(std::min<uint64_t>(body_left_, bytes.size()));
    body_left_ -= taken;
    return Piece{.bytes = taken};
  }
  ATOLL_TRY(size_t head, pass_head(bytes));
  return Piece{.bytes = head, .is_head = head > 0};
}

Result<size_t> RequestStream::pass_head(std::string_view bytes) {
  // The scanner remembers how far it was, and is given the same bytes again with more behind them.
  auto end = scanner_.scan(bytes.substr(0, kMaxRequestHeadBytes));
  method_.clear();
  path_.clear();
  if (!end) return refused("bad_http", end.error().message());
  if (*end == 0) {
    if (bytes.size() >= kMaxRequestHeadBytes) return refused("bad_http", "the head is too long");
    return size_t{0};
  }
  ATOLL_TRY_VOID(check_head(bytes.substr(0, *end)));
  scanner_ = {};
  ++requests_;
  return *end;
}

Result<void> RequestStream::check_head(std::string_view head) {
  http::RequestParser parser;
  if (auto bad = parser.parse_header(head)) return refused("bad_http", bad->reason);
  http::Request request = parser.take_request();
  if (request.headers.fields().size() > kMaxRequestFields)
    return refused("bad_http", "too many fields");
  ATOLL_TRY_VOID(check_host(request.headers));
  // After an upgrade nothing would be looked at any more.
  for (const char* name : {"upgrade", "http2-settings"})
    if (request.headers.count(name) > 0) return refused("upgrade_refused", "asks for an upgrade");
  if (method_of(head) == "CONNECT") return refused("bad_http", "CONNECT to a server");
  method_ = method_of(head);
  path_ = request.path;
  if (request.headers.count("transfer-encoding") > 0)
    chunks_.emplace();
  else
    body_left_ = http::content_length(request.headers).value_or(0);
  return {};
}

Result<void> RequestStream::check_host(const http::Headers& headers) const {
  auto host = headers.find("host");
  if (!host) return refused("host_mismatch", "no Host");
  if (!is_authority_of(*host, to_, port_))
    return refused("host_mismatch", "Host is not where the connection goes");
  return {};
}

std::optional<Authority> parse_authority(std::string_view text) {
  bool bracketed = text.starts_with('[');
  size_t end = bracketed ? text.find(']') : text.find(':');
  if (bracketed && end == text.npos) return std::nullopt;
  std::string_view host = bracketed ? text.substr(1, end - 1) : text.substr(0, end);
  std::string_view tail =
      end == text.npos ? std::string_view() : text.substr(bracketed ? end + 1 : end);
  std::optional<uint16_t> port;
  if (!tail.empty()) {
    uint16_t number = 0;
    auto [stop, error] = std::from_chars(tail.data() + 1, tail.data() + tail.size(), number);
    bool plain = tail[0] == ':' && tail.size() > 1 && tail[1] != '0';
    if (!plain || error != std::errc() || stop != tail.data() + tail.size()) return std::nullopt;
    port = number;
  }
  if (auto address = Address::parse(host)) {
    if (bracketed != (address->family() == Address::Family::kV6)) return std::nullopt;
    return Authority{*address, port};
  }
  auto name = HostName::parse(host);
  if (!name || bracketed) return std::nullopt;
  return Authority{*name, port};
}

bool is_authority_of(std::string_view authority, const Destination& to, uint16_t port) {
  auto parsed = parse_authority(authority);
  return parsed && parsed->to == to && parsed->port.value_or(port) == port;
}

}  // namespace atl::egress
