// Keys: who signs in with which bearer key. Only hashes are kept. A key that was found is
// remembered in memory; a wrong one costs a look-up, so a flood of them is bounded by the ledger's
// one thread.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "sandbox/ledger.h"
#include "store/tenant.h"

namespace atl::sandbox {

inline constexpr size_t kMaxKeyBytes = 128;

class Keys {
 public:
  explicit Keys(Ledger& ledger) : ledger_(ledger) {}

  // Nothing when the key is unknown or revoked.
  Task<Result<std::optional<store::TenantId>>> tenant_of(std::string_view key);

 private:
  Ledger& ledger_;
  std::map<std::array<unsigned char, 32>, store::TenantId> known_;
};

}  // namespace atl::sandbox
