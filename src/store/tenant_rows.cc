#include "store/tenant_rows.h"

namespace atl::store {
namespace {

Result<TenantRow> read_row(Query& query) {
  auto id = TenantId::from_number(query.int64());
  std::string name = query.text();
  int64_t created_at_ms = query.int64();
  ATOLL_TRY_VOID(query.row_done());
  if (!id) return Error(Code::kCorrupt, "read tenant: malformed id");
  return TenantRow{.id = *id, .name = std::move(name), .created_at_ms = created_at_ms};
}

}  // namespace

Result<TenantId> TenantRows::insert(std::string_view name, int64_t created_at_ms) {
  ATOLL_TRY(Query query, database_.query("INSERT INTO tenants (name, created_at_ms) VALUES (?, ?) "
                                         "RETURNING tenant_id",
                                         name, created_at_ms));
  ATOLL_TRY(bool found, query.next());
  ATOLL_CHECK(found);
  auto id = TenantId::from_number(query.int64());
  ATOLL_TRY_VOID(query.row_done());
  ATOLL_CHECK(id.has_value());
  // The insert is committed when the statement has come to its end, not at its first row.
  ATOLL_TRY_VOID(query.run());
  return *id;
}

Result<std::optional<TenantRow>> TenantRows::find(TenantId id) {
  ATOLL_TRY(Query query, database_.query("SELECT tenant_id, name, created_at_ms FROM tenants "
                                         "WHERE tenant_id = ?",
                                         id.number()));
  ATOLL_TRY(bool found, query.next());
  if (!found) return std::optional<TenantRow>();
  ATOLL_TRY(TenantRow row, read_row(query));
  return std::optional(std::move(row));
}

Result<std::optional<TenantRow>> TenantRows::find_by_name(std::string_view name) {
  ATOLL_TRY(Query query, database_.query("SELECT tenant_id, name, created_at_ms FROM tenants "
                                         "WHERE name = ?",
                                         name));
  ATOLL_TRY(bool found, query.next());
  if (!found) return std::optional<TenantRow>();
  ATOLL_TRY(TenantRow row, read_row(query));
  return std::optional(std::move(row));
}

Result<std::vector<TenantRow>> TenantRows::all() {
  ATOLL_TRY(Query query, database_.query("SELECT tenant_id, name, created_at_ms FROM tenants "
                                         "ORDER BY tenant_id"));
  std::vector<TenantRow> rows;
  while (true) {
    ATOLL_TRY(bool found, query.next());
    if (!found) return rows;
    ATOLL_TRY(TenantRow row, read_row(query));
    rows.push_back(std::move(row));
  }
}

}  // namespace atl::store
