#include "store/template_rows.h"

namespace atl::store {
namespace {

#define TEMPLATE_COLUMNS \
  "tenant_id, name, image, inputs, pack, manifest, image_bytes, created_at_ms, current"

Result<TemplateRow> read_row(Query& query) {
  auto tenant = TenantId::from_number(query.int64());
  std::string name = query.text();
  auto image = Digest::from_bytes(query.blob<Digest::kBytes>());
  auto inputs = Digest::from_bytes(query.blob<Digest::kBytes>());
  auto pack = Digest::from_bytes(query.blob<Digest::kBytes>());
  std::string manifest = query.text();
  uint64_t image_bytes = query.uint64();
  int64_t created_at_ms = query.int64();
  bool current = query.int64() != 0;
  ATOLL_TRY_VOID(query.row_done());
  if (!tenant) return Error(Code::kCorrupt, "read template " + name + ": malformed tenant");
  return TemplateRow{.tenant = *tenant,
                     .name = std::move(name),
                     .image = image,
                     .inputs = inputs,
                     .pack = pack,
                     .manifest = std::move(manifest),
                     .image_bytes = image_bytes,
                     .created_at_ms = created_at_ms,
                     .current = current};
}

}  // namespace

Result<void> TemplateRows::put(const TemplateRow& row) {
  ATOLL_TRY(Transaction transaction, Transaction::begin(database_));
  int64_t tenant = row.tenant.number();
  ATOLL_TRY([[maybe_unused]] int64_t before,
            database_.run("UPDATE templates SET current = 0 WHERE tenant_id = ? AND name = ?",
                          tenant, row.name));
  auto inserted = database_.run(
      "INSERT OR REPLACE INTO templates (" TEMPLATE_COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)",
      tenant, row.name, Blob(row.image.bytes()), Blob(row.inputs.bytes()), Blob(row.pack.bytes()),
      row.manifest, row.image_bytes, row.created_at_ms);
  if (!inserted) return std::move(inserted).error().with_context("insert template " + row.name);
  ATOLL_TRY([[maybe_unused]] int64_t forgotten,
            database_.run("DELETE FROM templates WHERE tenant_id = ? AND name = ? AND rowid NOT IN "
                          "(SELECT rowid FROM templates WHERE tenant_id = ? AND name = ? "
                          "ORDER BY current DESC, created_at_ms DESC, rowid DESC LIMIT ?)",
                          tenant, row.name, tenant, row.name, kKeptTemplateVersions));
  return transaction.commit();
}

Result<std::vector<TemplateRow>> TemplateRows::all() {
  ATOLL_TRY(Query query, database_.query("SELECT " TEMPLATE_COLUMNS " FROM templates ORDER BY "
                                         "tenant_id, name, current DESC, created_at_ms DESC"));
  std::vector<TemplateRow> rows;
  while (true) {
    ATOLL_TRY(bool found, query.next());
    if (!found) return rows;
    ATOLL_TRY(TemplateRow row, read_row(query));
    rows.push_back(std::move(row));
  }
}

Result<void> TemplateRows::remove(TenantId tenant, std::string_view name) {
  ATOLL_TRY(int64_t removed, database_.run("DELETE FROM templates WHERE tenant_id = ? AND name = ?",
                                           tenant.number(), name));
  if (removed == 0) return Error(Code::kNotFound, "there is no template " + std::string(name));
  return {};
}

}  // namespace atl::store
