#include "api/e2b/token_index.h"

#include "api/e2b/signature.h"
#include "store/sha256.h"

namespace atl::api::e2b {

TokenIndex::Hash TokenIndex::hash_of(std::string_view token) {
  return store::sha256(token).bytes();
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

std::optional<SandboxId> TokenIndex::find(std::string_view token) {
  Hash hash = hash_of(token);
  auto found = by_hash_.find(hash);
  if (found == by_hash_.end()) {
    catch_up();
    found = by_hash_.find(hash);
  }
  return found == by_hash_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<SandboxId> TokenIndex::find_signed(const http::Request& request) {
  catch_up();
  for (const auto& [id, token] : known_)
    if (is_signed(request, token)) return id;
  return std::nullopt;
}

}  // namespace atl::api::e2b
