// The signature of a link to a file: "v1_" and the base 64, without padding, of the SHA-256 of
// "<path>:<read or write>:<user>:<token>[:<expiry>]". It covers path and user as they stand in the
// query.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "http/message.h"
#include "store/sha256.h"

namespace atl::api::e2b {

inline constexpr size_t kMaxLinkPathBytes = 4096;

// What a link shows; a part that is missing, malformed or there twice is empty.
struct FileLink {
  std::string path;
  std::string_view operation;  // "read" or "write"
  std::string user, expiration, signature;
};

// Nothing if the request shows no signature.
std::optional<FileLink> parse_link(const http::Request& request);
// What is to be known before anything is hashed: a link that is over admits nobody, whatever else
// is sent with it, and one that is too long is none.
Result<void> check_link(const FileLink& link, WallTime now);

std::string signature_of(const FileLink& link, std::string_view token);

// Compares one link with the tokens of many sandboxes. What comes before the token is hashed once,
// so that each costs the same however long the path is.
class LinkComparison {
 public:
  // `link` outlives it.
  explicit LinkComparison(const FileLink& link);
  bool is_signed_with(std::string_view token) const;

 private:
  const FileLink& link_;
  store::Sha256 before_token_;
};

}  // namespace atl::api::e2b
