#include "sandbox/keys.h"

#include "store/sha256.h"

namespace atl::sandbox {

Task<Result<std::optional<store::TenantId>>> Keys::tenant_of(std::string_view key) {
  using Answer = std::optional<store::TenantId>;
  if (key.empty() || key.size() > kMaxKeyBytes) co_return Answer();
  // Looking up by hash leaks nothing of the key by its timing.
  std::array<unsigned char, 32> hash = store::sha256(key).bytes();
  if (auto found = known_.find(hash); found != known_.end()) co_return Answer(found->second);
  auto look_up = [hash](store::Catalog& catalog) { return catalog.keys().find_by_hash(hash); };
  ATOLL_CO_TRY(auto row, co_await ledger_.run(look_up));
  if (!row) co_return Answer();
  known_.emplace(hash, row->tenant);
  co_return Answer(row->tenant);
}

}  // namespace atl::sandbox
