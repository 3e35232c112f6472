// The requests of one plain HTTP/1.1 connection, looked at before they go on: each must be for the
// one destination that the connection is for, and everything that two readers could see in two ways
// is refused. Nothing is changed: what passes is passed byte by byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "egress/host_name.h"
#include "egress/policy.h"
#include "http/parser.h"

namespace atl::egress {

inline constexpr size_t kMaxRequestHeadBytes = 64 * 1024;
inline constexpr size_t kMaxRequestFields = 256;

// Follows a chunked body: plain sizes, no extensions, no trailers.
class ChunkFraming {
 public:
  // How many of `bytes` belong to the body; kInvalid for anything unusual.
  Result<size_t> take(std::string_view bytes);
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State : unsigned char {
    kFirstDigit,
    kDigits,
    kSizeEnd,
    kData,
    kDataEnd,
    kDataLineEnd,
    kLastEnd,
    kLastLineEnd,
    kDone
  };
  Result<void> step(char c);

  State state_ = State::kFirstDigit;
  uint64_t left_ = 0;
  unsigned digits_ = 0;
};

class RequestStream {
 public:
  RequestStream(Destination to, uint16_t port) : to_(std::move(to)), port_(port) {}

  // Looks at `bytes`, which follow those that have passed. How many may go on; 0: the head is not
  // complete. An error ends the connection; its reason is one of a fixed list.
  Result<size_t> pass(std::string_view bytes);

  struct Piece {
    size_t bytes = 0;
    bool is_head = false;  // a whole head, which may be replaced by another of the same framing
  };
  // The same for the first piece of `bytes` alone: one head, or what there is of a body.
  Result<Piece> pass_piece(std::string_view bytes);

  uint64_t requests() const { return requests_; }
  // Of the last request, if its head was understood.
  const std::string& method() const { return method_; }
  const std::string& path() const { return path_; }

 private:
  Result<size_t> pass_head(std::string_view bytes);
  Result<void> check_head(std::string_view head);
  Result<void> check_host(const http::Headers& headers) const;

  const Destination to_;
  const uint16_t port_;
  http::HeaderScanner scanner_;
  uint64_t body_left_ = 0;
  std::optional<ChunkFraming> chunks_;
  uint64_t requests_ = 0;
  std::string method_, path_;
};

// Whether an authority ("name", "name:port", "[v6]:port") means this destination and port.
bool is_authority_of(std::string_view authority, const Destination& to, uint16_t port);

struct Authority {
  Destination to;
  std::optional<uint16_t> port;
};
std::optional<Authority> parse_authority(std::string_view text);

}  // namespace atl::egress
