#include "api/e2b/token_index.h"

#include <algorithm>

#include "store/sha256.h"

namespace atl::api::e2b {

namespace {

constexpr size_t kMaxRememberedLinks = 16'384;
constexpr std::string_view kAll = "all";

}  // namespace

TokenIndex::Hash TokenIndex::hash_of(std::string_view token) {
  return store::sha256(token).bytes();
}

Result<void> TokenIndex::pay() {
  SteadyTime now = sandboxes_.services().clock.steady_now();
  uint64_t tokens = std::min<uint64_t>(sandboxes_.all().size(), most_at_once_);
  if (budget_.take(kAll, now, tokens)) return {};
  return Error(Code::kExhausted, "too many tokens and links that fit no sandbox are being sent")
      .with_reason("rate_limited");
}

void TokenIndex::catch_up() {
  const auto& all = sandboxes_.all();
  for (auto known = known_.begin(); known != known_.end();) {
    if (all.contains(known->first)) {
      ++known;
      continue;
    }
    by_hash_.erase(hash_of(known->second));
    known = known_.erase(known);
  }
  if (known_.size() == all.size()) return;
  for (const auto& [id, sandbox] : all) {
    auto [entry, is_new] = known_.try_emplace(id);
    if (!is_new) continue;
    entry->second = tokens_.access_token(id);
    by_hash_.emplace(hash_of(entry->second), id);
  }
}

std::optional<SandboxId> TokenIndex::recall(std::string_view token) const {
  auto found = by_hash_.find(hash_of(token));
  bool lives = found != by_hash_.end() && sandboxes_.all().contains(found->second);
  return lives ? std::optional(found->second) : std::nullopt;
}

std::optional<SandboxId> TokenIndex::recall(const FileLink& link) const {
  auto found = links_.find(hash_of(link.signature));
  bool lives = found != links_.end() && sandboxes_.all().contains(found->second);
  return lives ? std::optional(found->second) : std::nullopt;
}

Result<std::optional<SandboxId>> TokenIndex::search(std::string_view token) {
  ATOLL_TRY_VOID(pay());
  catch_up();
  return recall(token);
}

Result<std::optional<SandboxId>> TokenIndex::search(const FileLink& link) {
  ATOLL_TRY_VOID(pay());
  catch_up();
  LinkComparison comparison(link);
  for (const auto& [id, token] : known_) {
    if (!comparison.is_signed_with(token)) continue;
    remember(link, id);
    return std::optional(id);
  }
  return std::optional<SandboxId>();
}

// Only what somebody with the token has signed gets here, and only once; the oldest are not worth
// finding.
void TokenIndex::remember(const FileLink& link, SandboxId id) {
  if (links_.size() >= kMaxRememberedLinks) links_.clear();
  links_.insert_or_assign(hash_of(link.signature), id);
}

}  // namespace atl::api::e2b
