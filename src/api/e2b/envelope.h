// Streams of the Connect protocol with JSON: each message is a flag, its length (four bytes, the
// highest first) and its text; the last one has flag 2 and says how it ended.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::api::e2b {

inline constexpr std::string_view kStreamType = "application/connect+json";

std::string envelope(std::string_view json_text);
// Without an error: it ended well.
std::string end_of_stream(const Error* error = nullptr);

// Cuts the messages of a request out of its bytes.
class Envelopes {
 public:
  void add(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole one, or nothing yet. kInvalid: compressed, or over 1 MiB.
  Result<std::optional<std::string>> next();

 private:
  std::string buffer_;
};

// The one message of a request; nothing if it is not exactly one, uncompressed.
std::optional<std::string_view> only_message(std::string_view body);

}  // namespace atl::api::e2b
