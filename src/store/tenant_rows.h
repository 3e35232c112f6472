// Table tenants. Written with kMachine durability.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"
#include "store/tenant.h"

namespace atl::store {

struct TenantRow {
  TenantId id;
  std::string name;
  int64_t created_at_ms = 0;
};

class TenantRows {
 public:
  explicit TenantRows(Database& database) : database_(database) {}

  // kConflict: the name is taken.
  Result<TenantId> insert(std::string_view name, int64_t created_at_ms);
  Result<std::optional<TenantRow>> find(TenantId id);
  Result<std::optional<TenantRow>> find_by_name(std::string_view name);
  // For the operator, who may see every tenant.
  Result<std::vector<TenantRow>> all();

 private:
  Database& database_;
};

}  // namespace atl::store
