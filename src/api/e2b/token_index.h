// TokenIndex: which sandbox a token or a signed link belongs to, when that is all a request shows.
// Tokens are not stored anywhere; here they are remembered, so that looking one up costs one hash.
// A signature shows nothing of its token: of a signed link that was not seen before every token is
// tried. What that costs grows with the number of sandboxes and strangers can ask for it, so all
// searches together have a budget, and what they found is remembered.
//
// One thread. Outlives the router's calls.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "api/e2b/signature.h"
#include "api/traffic.h"
#include "sandbox/port_tokens.h"
#include "sandbox/sandboxes.h"

namespace atl::api::e2b {

// Tokens that searches may look at, at once and then a second: a twentieth of the one thread.
struct SearchBudget {
  uint64_t at_once = 200'000;
  uint64_t per_second = 100'000;
};

class TokenIndex {
 public:
  TokenIndex(sandbox::Sandboxes& sandboxes, const sandbox::PortTokens& tokens,
             SearchBudget budget = {})
      : sandboxes_(sandboxes),
        tokens_(tokens),
        most_at_once_(budget.at_once),
        budget_(budget.at_once, budget.per_second) {}

  // Of what is remembered, which costs the same however many sandboxes there are.
  std::optional<SandboxId> recall(std::string_view token) const;
  std::optional<SandboxId> recall(const FileLink& link) const;
  // Also of sandboxes that are new, and of links that were not seen before; rate_limited when too
  // many are searched for.
  Result<std::optional<SandboxId>> search(std::string_view token);
  Result<std::optional<SandboxId>> search(const FileLink& link);
  size_t size() const { return known_.size(); }

 private:
  using Hash = std::array<unsigned char, 32>;
  // Looking up by hash leaks nothing of a token by its timing.
  static Hash hash_of(std::string_view token);
  Result<void> pay();
  // Learns of sandboxes that are new, forgets those that are gone.
  void catch_up();
  void remember(const FileLink& link, SandboxId id);

  sandbox::Sandboxes& sandboxes_;
  const sandbox::PortTokens& tokens_;
  uint64_t most_at_once_;
  Buckets budget_;
  std::map<SandboxId, std::string> known_;
  std::map<Hash, SandboxId> by_hash_;
  std::map<Hash, SandboxId> links_;  // by the hash of their signature
};

}  // namespace atl::api::e2b
