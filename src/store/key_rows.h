// Table keys: how a tenant signs in. Only the SHA-256 of a key is stored, never its text: the keys
// are 200 random bits, so a plain hash cannot be guessed back. Written with kMachine durability.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "store/database.h"
#include "store/tenant.h"

namespace atl::store {

using KeyHash = std::array<unsigned char, Digest::kBytes>;

struct KeyRow {
  std::string id;
  TenantId tenant;
  std::string name;
  KeyHash hash{};
  int64_t created_at_ms = 0;
  std::optional<int64_t> revoked_at_ms = {};
  int64_t sequence = 0;  // its place in a list
};

class KeyRows {
 public:
  explicit KeyRows(Database& database) : database_(database) {}

  // kConflict: the id or the hash is there already, possibly revoked.
  Result<void> insert(const KeyRow& row);
  // Inserts, and revokes every other key of the same tenant and name, in one transaction.
  Result<void> replace(const KeyRow& row);
  // The one query without a tenant: it is how a request finds its tenant. Never a revoked key.
  Result<std::optional<KeyRow>> find_by_hash(const KeyHash& hash);
  // Also revoked ones.
  Result<std::vector<KeyRow>> list(TenantId tenant);
  // For the operator, who may see every tenant. Never a revoked key.
  Result<std::vector<KeyRow>> all_in_force();
  // kNotFound: no such key in force.
  Result<void> revoke(TenantId tenant, std::string_view id, int64_t revoked_at_ms);

 private:
  Database& database_;
};

}  // namespace atl::store
