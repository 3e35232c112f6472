#include "http/parser.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <boost/beast/http/basic_parser.hpp>

#include "http/head.h"

namespace atl::http {

namespace beast_http = boost::beast::http;
using boost::beast::error_code;
using BeastView = boost::beast::string_view;

// Collects the header as our types and copies body bytes into `room`.
template <bool kIsRequest>
class BeastParser final : public beast_http::basic_parser<kIsRequest> {
 public:
  BeastParser() {
    // The caller bounds both: the header by its buffer, the body by how much is asked for.
    this->header_limit((std::numeric_limits<uint32_t>::max)());
    this->body_limit(boost::none);
  }

  Result<Decoded> decode(std::string_view wire, std::span<char> into) {
    room_ = into;
    size_t consumed = 0;
    while (!this->is_done() && !room_.empty() && consumed < wire.size()) {
      size_t left = wire.size() - consumed;
      bool at_chunk_mark = this->chunked() && chunk_bytes_left_ == 0;
      if (at_chunk_mark && left < kShortestLastChunk) break;
      error_code error;
      size_t taken = this->put(boost::asio::const_buffer(wire.data() + consumed, left), error);
      consumed += taken;
      if (error == beast_http::error::need_more) break;
      if (error) return Error(Code::kInvalid, "body: " + error.message());
      if (taken == 0) break;
    }
    return Decoded{.consumed = consumed, .produced = into.size() - room_.size()};
  }

  Method method = Method::kOther;
  std::string target;
  int version = 11;
  int status = 0;
  Headers headers;

 private:
  void on_request_impl(beast_http::verb verb, BeastView, BeastView request_target,
                       int request_version, error_code& error) override {
    error = {};
    method = to_method(verb);
    target = std::string(request_target);
    version = request_version;
  }
  void on_response_impl(int code, BeastView, int response_version, error_code& error) override {
    error = {};
    status = code;
    version = response_version;
  }
  void on_field_impl(beast_http::field, BeastView name, BeastView value,
                     error_code& error) override {
    error = {};
    // A trailer comes after decisions were made on the header: it must not change it.
    if (!in_body_) headers.add(std::string(name), std::string(value));
  }
  void on_header_impl(error_code& error) override {
    error = {};
    in_body_ = true;
  }
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code& error) override {
    error = {};
  }
  size_t on_body_impl(BeastView body, error_code& error) override {
    error = {};
    size_t count = std::min(body.size(), room_.size());
    std::memcpy(room_.data(), body.data(), count);
    room_ = room_.subspan(count);
    return count;
  }
  void on_chunk_header_impl(uint64_t size, BeastView, error_code& error) override {
    error = {};
    chunk_bytes_left_ = size;
  }
  size_t on_chunk_body_impl(uint64_t, BeastView body, error_code& error) override {
    size_t count = on_body_impl(body, error);
    chunk_bytes_left_ -= count;
    return count;
  }
  void on_finish_impl(error_code& error) override { error = {}; }

  static Method to_method(beast_http::verb verb) {
    switch (verb) {
      case beast_http::verb::get:
        return Method::kGet;
      case beast_http::verb::head:
        return Method::kHead;
      case beast_http::verb::post:
        return Method::kPost;
      case beast_http::verb::put:
        return Method::kPut;
      case beast_http::verb::patch:
        return Method::kPatch;
      case beast_http::verb::delete_:
        return Method::kDelete;
      case beast_http::verb::options:
        return Method::kOptions;
      default:
        return Method::kOther;
    }
  }

  // "0\r\n\r\n". Beast 1.81 asserts to have all of it once it has seen "0\r\n", so a peer that
  // sends it in pieces would abort the process. Waiting loses nothing: at least that much always
  // follows a chunk.
  static constexpr size_t kShortestLastChunk = 5;

  std::span<char> room_;
  uint64_t chunk_bytes_left_ = 0;
  bool in_body_ = false;
};

namespace {

template <bool kIsRequest>
error_code put_header(BeastParser<kIsRequest>& parser, std::string_view header) {
  error_code error;
  size_t taken = parser.put(boost::asio::const_buffer(header.data(), header.size()), error);
  if (!error && (taken != header.size() || !parser.is_header_done())) {
    return beast_http::error::bad_field;
  }
  return error;
}

// Beast says bad_version for a version it does not speak and for a line that has none.
bool names_a_version(std::string_view header) {
  std::string_view line = header.substr(0, header.find("\r\n"));
  if (std::count(line.begin(), line.end(), ' ') != 2) return false;
  std::string_view version = line.substr(line.rfind(' ') + 1);
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return version.size() == 8 && version.starts_with("HTTP/") && digit(version[5]) &&
         version[6] == '.' && digit(version[7]);
}

std::optional<Refused> check_framing(const Headers& headers, bool http_1_0) {
  size_t lengths = headers.count("content-length");
  size_t encodings = headers.count("transfer-encoding");
  if (lengths > 1) return Refused{400, "more than one Content-Length"};
  if (lengths == 1 && !content_length(headers)) return Refused{400, "bad Content-Length"};
  if (lengths > 0 && encodings > 0) {
    return Refused{400, "both Content-Length and Transfer-Encoding"};
  }
  if (encodings == 0) return std::nullopt;
  if (http_1_0) return Refused{400, "Transfer-Encoding in HTTP/1.0"};
  if (encodings > 1 || !equal_ignoring_case(*headers.find("transfer-encoding"), "chunked")) {
    return Refused{400, "Transfer-Encoding other than chunked"};
  }
  return std::nullopt;
}

std::optional<Refused> check_request(const Request& request, bool http_1_0) {
  if (auto refused = check_framing(request.headers, http_1_0)) return refused;
  size_t hosts = request.headers.count("host");
  if (hosts > 1) return Refused{400, "more than one Host"};
  if (hosts == 0 && !http_1_0) return Refused{400, "no Host"};
  bool whole_server = request.method == Method::kOptions && request.target == "*";
  if (!request.target.starts_with('/') && !whole_server) {
    return Refused{400, "request target is not a path"};
  }
  return std::nullopt;
}

}  // namespace

Result<size_t> HeaderScanner::scan(std::string_view bytes) {
  // Rubbish, such as a TLS greeting, is answered at once instead of after the time for a header.
  if (!bytes.empty() && !is_token(bytes.substr(0, 1))) {
    return Error(Code::kInvalid, "bad request line");
  }
  while (scanned_ < bytes.size()) {
    bool line_begins = scanned_ == line_start_ && line_start_ > 0;
    if (line_begins && (bytes[scanned_] == ' ' || bytes[scanned_] == '\t')) {
      return Error(Code::kInvalid, "folded header line");
    }
    const void* found = std::memchr(bytes.data() + scanned_, '\n', bytes.size() - scanned_);
    if (found == nullptr) {
      scanned_ = bytes.size();
      return size_t{0};
    }
    size_t end = static_cast<size_t>(static_cast<const char*>(found) - bytes.data());
    if (end == 0 || bytes[end - 1] != '\r') {
      return Error(Code::kInvalid, "line does not end in CR LF");
    }
    bool blank = end == line_start_ + 1;
    scanned_ = line_start_ = end + 1;
    if (blank) return scanned_;
  }
  return size_t{0};
}

RequestParser::RequestParser() : parser_(std::make_unique<BeastParser<true>>()) {}
RequestParser::~RequestParser() = default;

std::optional<Refused> RequestParser::parse_header(std::string_view header) {
  error_code error = put_header(*parser_, header);
  if (error == beast_http::error::bad_version && names_a_version(header)) {
    return Refused{505, "HTTP version not supported"};
  }
  if (error) return Refused{400, error.message()};
  request_.method = parser_->method;
  request_.target = std::move(parser_->target);
  request_.headers = std::move(parser_->headers);
  if (auto refused = check_request(request_, is_http_1_0())) return refused;
  size_t question = request_.target.find('?');
  request_.path = request_.target.substr(0, question);
  if (question != std::string::npos) request_.query = request_.target.substr(question + 1);
  std::optional<std::string_view> expect = request_.headers.find("expect");
  if (expect && !is_http_1_0()) {
    if (!equal_ignoring_case(*expect, "100-continue")) {
      return Refused{417, "unknown expectation"};
    }
    expects_continue_ = !body_done();
  }
  return std::nullopt;
}

Request RequestParser::take_request() { return std::move(request_); }
bool RequestParser::is_http_1_0() const { return parser_->version < 11; }
// HTTP/1.0 keep-alive is a custom of old, not a standard; such a client gets one answer.
bool RequestParser::keep_alive() const { return !is_http_1_0() && parser_->keep_alive(); }
bool RequestParser::body_done() const { return parser_->is_done(); }

std::optional<uint64_t> RequestParser::body_bytes_left() const {
  auto left = parser_->content_length_remaining();
  if (!left) return std::nullopt;
  return *left;
}

Result<Decoded> RequestParser::decode(std::string_view wire, std::span<char> into) {
  return parser_->decode(wire, into);
}

ResponseParser::ResponseParser() : parser_(std::make_unique<BeastParser<false>>()) {}
ResponseParser::~ResponseParser() = default;

Result<void> ResponseParser::parse_header(std::string_view header, Method request_method) {
  parser_->skip(request_method == Method::kHead);
  error_code error = put_header(*parser_, header);
  if (error) return Error(Code::kCorrupt, "response header: " + error.message());
  if (auto refused = check_framing(parser_->headers, parser_->version < 11)) {
    return Error(Code::kCorrupt, "response header: " + refused->reason);
  }
  // Beast takes any three digits.
  if (parser_->status < 100) return Error(Code::kCorrupt, "response header: no such status");
  return {};
}

int ResponseParser::status() const { return parser_->status; }
Headers ResponseParser::take_headers() { return std::move(parser_->headers); }
bool ResponseParser::keep_alive() const { return parser_->keep_alive(); }
bool ResponseParser::body_done() const { return parser_->is_done(); }

Result<Decoded> ResponseParser::decode(std::string_view wire, std::span<char> into) {
  return parser_->decode(wire, into);
}

Result<void> ResponseParser::finish() {
  error_code error;
  parser_->put_eof(error);
  if (error) return Error(Code::kUnavailable, "response body: connection closed before its end");
  return {};
}

}  // namespace atl::http
