// The signature of a link to a file: "v1_" and the base 64, without padding, of the SHA-256 of
// "<path>:<read or write>:<user>:<token>[:<expiry>]". It covers path and user as they stand in the
// query.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "http/message.h"

namespace atl::api::e2b {

// What is signed, as text.
struct SignedLink {
  std::string_view path, operation, user, token, expiration;  // no expiration: empty
};
std::string signature_of(const SignedLink& link);

bool has_signature(const http::Request& request);
// Whether the query is signed with that token, expired or not.
bool is_signed(const http::Request& request, std::string_view token);
bool has_expired(const http::Request& request, WallTime now);

}  // namespace atl::api::e2b
