// TokenIndex: which sandbox a token or a signed link belongs to, when that is all a request shows.
// Tokens are not stored anywhere; here they are remembered, so that looking one up costs one hash
// and not a signature for each sandbox. A signature shows nothing of its token, so of a signed link
// every token is tried: one hash each.
//
// One thread. Outlives the router's calls.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"
#include "sandbox/port_tokens.h"
#include "sandbox/sandboxes.h"

namespace atl::api::e2b {

class TokenIndex {
 public:
  TokenIndex(const sandbox::Sandboxes& sandboxes, const sandbox::PortTokens& tokens)
      : sandboxes_(sandboxes), tokens_(tokens) {}

  std::optional<SandboxId> find(std::string_view token);
  std::optional<SandboxId> find_signed(const http::Request& request);
  size_t size() const { return known_.size(); }

 private:
  using Hash = std::array<unsigned char, 32>;
  // Looking up by hash leaks nothing of a token by its timing.
  static Hash hash_of(std::string_view token);
  // Learns of sandboxes that are new, forgets those that are gone.
  void catch_up();

  const sandbox::Sandboxes& sandboxes_;
  const sandbox::PortTokens& tokens_;
  std::map<SandboxId, std::string> known_;
  std::map<Hash, SandboxId> by_hash_;
};

}  // namespace atl::api::e2b
