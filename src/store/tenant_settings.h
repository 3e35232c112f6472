// Table tenant_settings: what an operator has set for a tenant. Written with kMachine durability.
// Has a connection of its own to the catalog's file, which must have been migrated; belongs to one
// thread at a time.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "store/blob_shares.h"
#include "store/database.h"
#include "store/tenant.h"

namespace atl::store {

// What a client of E2B that asks for the internet gets. kAllowed: every name of the public
// internet.
enum class E2bInternet : unsigned char { kDenied, kAllowed };

struct TenantSetting {
  E2bInternet e2b_internet = E2bInternet::kDenied;
  std::string network = "{}";  // what the policies of its sandboxes have where they say nothing
  uint64_t sealed_bytes = kSealedShareBytes;  // that its sealed snapshots may have
  bool operator==(const TenantSetting&) const = default;
};

class TenantSettings {
 public:
  static Result<TenantSettings> open(const std::string& path);

  Result<void> set(TenantId tenant, const TenantSetting& setting);
  // Of every tenant for whom it is not as it is for all.
  Result<std::map<TenantId, TenantSetting>> all();

 private:
  explicit TenantSettings(Database database) : database_(std::move(database)) {}
  Database database_;
};

}  // namespace atl::store
