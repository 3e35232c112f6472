#include "store/key_rows.h"

namespace atl::store {
namespace {

#define KEY_COLUMNS "key_id, tenant_id, name, hash, created_at_ms, revoked_at_ms, sequence"

Result<KeyRow> read_row(Query& query) {
  std::string id = query.text();
  auto tenant = TenantId::from_number(query.int64());
  std::string name = query.text();
  KeyHash hash = query.blob<Digest::kBytes>();
  int64_t created_at_ms = query.int64();
  std::optional<int64_t> revoked_at_ms = query.int64_or_null();
  int64_t sequence = query.int64();
  ATOLL_TRY_VOID(query.row_done());
  if (!tenant) return Error(Code::kCorrupt, "read key " + id + ": malformed tenant");
  return KeyRow{.id = std::move(id),
                .tenant = *tenant,
                .name = std::move(name),
                .hash = hash,
                .created_at_ms = created_at_ms,
                .revoked_at_ms = revoked_at_ms,
                .sequence = sequence};
}

Result<std::vector<KeyRow>> read_rows(Query& query) {
  std::vector<KeyRow> rows;
  while (true) {
    ATOLL_TRY(bool found, query.next());
    if (!found) return rows;
    ATOLL_TRY(KeyRow row, read_row(query));
    rows.push_back(std::move(row));
  }
}

}  // namespace

Result<void> KeyRows::insert(const KeyRow& row) {
  auto inserted = database_.run("INSERT INTO keys (" KEY_COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?)",
                                row.id, row.tenant.number(), row.name, Blob(row.hash),
                                row.created_at_ms, row.revoked_at_ms, row.sequence);
  if (!inserted) return std::move(inserted).error().with_context("insert key " + row.id);
  return {};
}

Result<void> KeyRows::replace(const KeyRow& row) {
  ATOLL_TRY(Transaction transaction, Transaction::begin(database_));
  ATOLL_TRY([[maybe_unused]] int64_t revoked,
            database_.run("UPDATE keys SET revoked_at_ms = ? WHERE tenant_id = ? AND name = ? "
                          "AND revoked_at_ms IS NULL",
                          row.created_at_ms, row.tenant.number(), row.name));
  ATOLL_TRY_VOID(insert(row));
  return transaction.commit();
}

Result<std::optional<KeyRow>> KeyRows::find_by_hash(const KeyHash& hash) {
  ATOLL_TRY(Query query, database_.query("SELECT " KEY_COLUMNS " FROM keys "
                                         "WHERE hash = ? AND revoked_at_ms IS NULL",
                                         Blob(hash)));
  ATOLL_TRY(bool found, query.next());
  if (!found) return std::optional<KeyRow>();
  ATOLL_TRY(KeyRow row, read_row(query));
  return std::optional(std::move(row));
}

Result<std::vector<KeyRow>> KeyRows::list(TenantId tenant) {
  ATOLL_TRY(Query query, database_.query("SELECT " KEY_COLUMNS " FROM keys WHERE tenant_id = ? "
                                         "ORDER BY sequence, key_id",
                                         tenant.number()));
  return read_rows(query);
}

Result<std::vector<KeyRow>> KeyRows::all_in_force() {
  ATOLL_TRY(Query query, database_.query("SELECT " KEY_COLUMNS " FROM keys "
                                         "WHERE revoked_at_ms IS NULL "
                                         "ORDER BY sequence, key_id"));
  return read_rows(query);
}

Result<void> KeyRows::revoke(TenantId tenant, std::string_view id, int64_t revoked_at_ms) {
  ATOLL_TRY(int64_t changed,
            database_.run("UPDATE keys SET revoked_at_ms = ? WHERE tenant_id = ? AND key_id = ? "
                          "AND revoked_at_ms IS NULL",
                          revoked_at_ms, tenant.number(), id));
  if (changed == 0)
    return Error(Code::kNotFound, "revoke key " + std::string(id) + ": no such key in force");
  return {};
}

}  // namespace atl::store
