#include "store/tenant_settings.h"

namespace atl::store {

Result<TenantSettings> TenantSettings::open(const std::string& path) {
  ATOLL_TRY(Database database, Database::open(path, Durability::kMachine));
  return TenantSettings(std::move(database));
}

Result<void> TenantSettings::set(TenantId tenant, const TenantSetting& setting) {
  int64_t allowed = setting.e2b_internet == E2bInternet::kAllowed ? 1 : 0;
  ATOLL_TRY(
      [[maybe_unused]] int64_t changed,
      database_.run("INSERT INTO tenant_settings (tenant_id, e2b_internet, network, sealed_bytes) "
                    "VALUES (?, ?, ?, ?) ON CONFLICT (tenant_id) DO UPDATE SET "
                    "e2b_internet = excluded.e2b_internet, network = excluded.network, "
                    "sealed_bytes = excluded.sealed_bytes",
                    tenant.number(), allowed, setting.network, setting.sealed_bytes));
  return {};
}

Result<std::map<TenantId, TenantSetting>> TenantSettings::all() {
  ATOLL_TRY(Query query, database_.query("SELECT tenant_id, e2b_internet, network, sealed_bytes "
                                         "FROM tenant_settings"));
  std::map<TenantId, TenantSetting> found;
  while (true) {
    ATOLL_TRY(bool more, query.next());
    if (!more) return found;
    auto tenant = TenantId::from_number(query.int64());
    bool allowed = query.int64() != 0;
    std::string network = query.text();
    uint64_t sealed_bytes = query.uint64();
    ATOLL_TRY_VOID(query.row_done());
    if (!tenant) return Error(Code::kCorrupt, "read the settings of tenants: malformed id");
    auto internet = allowed ? E2bInternet::kAllowed : E2bInternet::kDenied;
    found.emplace(*tenant, TenantSetting{internet, std::move(network), sealed_bytes});
  }
}

}  // namespace atl::store
