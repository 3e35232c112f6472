// Beast's HTTP/1 parser behind plain types, and the strictness that Beast leaves to its user:
// everything two implementations could read in two ways is refused, because there may be a proxy in
// front of us.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/message.h"

namespace atl::http {

// Why a request never reaches the handler.
struct Refused {
  int status;
  std::string reason;
};

// Finds the end of a header in bytes that arrive piece by piece, looking at each byte once.
class HeaderScanner {
 public:
  // `bytes` is all there is so far, from the first byte of the header. The length of the header
  // with its blank line; 0 when there is no end yet; kInvalid for line ends and folds that are not
  // allowed.
  Result<size_t> scan(std::string_view bytes);

 private:
  size_t scanned_ = 0;
  size_t line_start_ = 0;
};

struct Decoded {
  size_t consumed;  // bytes of the wire
  size_t produced;  // bytes of the body
};

template <bool kIsRequest>
class BeastParser;

class RequestParser {
 public:
  RequestParser();
  ~RequestParser();

  // `header` is the whole header with its blank line. To be called first, and once.
  std::optional<Refused> parse_header(std::string_view header);
  Request take_request();

  bool keep_alive() const;
  bool is_http_1_0() const;
  bool expects_continue() const { return expects_continue_; }

  bool body_done() const;
  // Of a body with a Content-Length.
  std::optional<uint64_t> body_bytes_left() const;
  // Takes the chunk marks away. Stops when `into` is full or `wire` has no more to give.
  Result<Decoded> decode(std::string_view wire, std::span<char> into);

 private:
  std::unique_ptr<BeastParser<true>> parser_;
  Request request_;
  bool expects_continue_ = false;
};

class ResponseParser {
 public:
  ResponseParser();
  ~ResponseParser();

  // `request_method` because the answer to HEAD has no body.
  Result<void> parse_header(std::string_view header, Method request_method);
  int status() const;
  Headers take_headers();

  bool keep_alive() const;
  bool body_done() const;
  Result<Decoded> decode(std::string_view wire, std::span<char> into);
  // The peer closed: the end of a body without a length, otherwise an error.
  Result<void> finish();

 private:
  std::unique_ptr<BeastParser<false>> parser_;
};

}  // namespace atl::http
