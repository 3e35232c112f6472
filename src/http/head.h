// The head of a message, the lines before its body, as bytes. Names and values are checked here, so
// that nothing a program or a peer said can end a line and begin a header field of its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/message.h"

namespace atl::http {

bool is_token(std::string_view text);
// No control characters but the tab.
bool is_field_value(std::string_view text);

// How the end of a body is known.
enum class Framing : unsigned char { kNone, kLength, kChunked, kUntilClose };

enum class After : unsigned char { kKeepAlive, kClose };

struct ResponseHead {
  int status = 200;
  Framing framing = Framing::kNone;
  uint64_t body_bytes = 0;  // for kLength
  After after = After::kKeepAlive;
};

// Framing fields (Content-Length, Transfer-Encoding, Connection, Keep-Alive) and Date are ours:
// those in `headers` are left out.
Result<std::string> format_response_head(const ResponseHead& head, const Headers& headers);

struct RequestHead {
  Method method = Method::kGet;
  std::string_view target;
  std::string_view host;
  uint64_t body_bytes = 0;
  Framing framing = Framing::kLength;  // or kChunked
  std::string_view connection = {};    // the Connection field, if there is to be one
};

Result<std::string> format_request_head(const RequestHead& head, const Headers& headers);

// Content-Length as a number; nothing if there is none, or not exactly one of digits only.
std::optional<uint64_t> content_length(const Headers& headers);

}  // namespace atl::http
