// Keys: who signs in with which bearer key. Only hashes are kept. A key that was found is
// remembered in memory; another one costs a look-up in the ledger's one thread. Keys are made and
// revoked only here, so that what is remembered stays true.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sandbox/ledger.h"
#include "store/tenant.h"

namespace atl::sandbox {

inline constexpr size_t kMaxKeyBytes = 128;
inline constexpr size_t kMaxKeys = 1000;  // in force

// Whose request it is. The operator is the holder of the key in the local file, and nobody else of
// the same tenant: a key that was handed to a program must not make keys.
struct Identity {
  enum class Role : unsigned char { kTenant, kOperator };
  store::TenantId tenant;
  Role role = Role::kTenant;
  std::string key_id;
};

struct NamedKey {
  std::string id;
  std::string tenant;
  std::string name;
  int64_t created_at_ms = 0;
};

struct NewKey {
  NamedKey named;
  std::string key;  // shown once, stored nowhere
};

// How a key is written. kE2b: as clients of E2B insist; it signs in everywhere all the same.
enum class KeyShape : unsigned char { kAtoll, kE2b };

// 1 to 63 of a-z, 0-9 and "-", beginning with a letter.
bool is_tenant_name(std::string_view text);
// Up to 63 bytes, and not the name of the local key.
bool is_key_name(std::string_view text);

class Keys {
 public:
  explicit Keys(Ledger& ledger) : ledger_(ledger) {}

  // Without a look-up: nothing also for a key that was not used yet.
  std::optional<Identity> recall(std::string_view key) const;
  // Nothing when the key is unknown or revoked.
  Task<Result<std::optional<Identity>>> identify(std::string_view key);

  // For the operator. A tenant that is named first is made.
  Task<Result<NewKey>> create(std::string tenant, std::string name,
                              KeyShape shape = KeyShape::kAtoll);
  // Those in force, oldest first.
  Task<Result<std::vector<NamedKey>>> list();
  Task<Result<void>> revoke(std::string id);

 private:
  Ledger& ledger_;
  std::map<std::array<unsigned char, 32>, Identity> known_;
  uint64_t revocations_ = 0;
};

}  // namespace atl::sandbox
