#include "store/template_rows.h"

namespace atl::store {
namespace {

#define TEMPLATE_COLUMNS \
  "tenant_id, name, image, inputs, pack, manifest, image_bytes, created_at_ms, current, sequence"

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
  int64_t sequence = query.int64();
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
                     .current = current,
                     .sequence = sequence};
}

}  // namespace

Result<void> TemplateRows::put(const TemplateRow& row, const std::vector<std::string>& tags) {
  ATOLL_TRY(Transaction transaction, Transaction::begin(database_));
  int64_t tenant = row.tenant.number();
  // The same image again stays the row that its tags refer to.
  auto inserted = database_.run(
      "INSERT INTO templates (" TEMPLATE_COLUMNS
      ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
      "NOT EXISTS (SELECT 1 FROM templates WHERE tenant_id = ?1 AND name = ?2 AND current = 1 "
      "AND image <> ?3), ?9) "
      "ON CONFLICT (tenant_id, name, image) DO UPDATE SET inputs = excluded.inputs, "
      "pack = excluded.pack, manifest = excluded.manifest, image_bytes = excluded.image_bytes, "
      "created_at_ms = excluded.created_at_ms, current = excluded.current, "
      "sequence = excluded.sequence",
      tenant, row.name, Blob(row.image.bytes()), Blob(row.inputs.bytes()), Blob(row.pack.bytes()),
      row.manifest, row.image_bytes, row.created_at_ms, row.sequence);
  if (!inserted) return std::move(inserted).error().with_context("insert template " + row.name);
  for (const std::string& tag : tags)
    ATOLL_TRY_VOID(write_tag({row.tenant, row.name, tag, row.image, row.created_at_ms}));
  ATOLL_TRY_VOID(forget_old(tenant, row.name));
  return transaction.commit();
}

Result<void> TemplateRows::forget_old(int64_t tenant, const std::string& name) {
  ATOLL_TRY([[maybe_unused]] int64_t forgotten,
            database_.run("DELETE FROM templates WHERE tenant_id = ?1 AND name = ?2 AND rowid NOT "
                          "IN (SELECT rowid FROM templates WHERE tenant_id = ?1 AND name = ?2 "
                          "ORDER BY current DESC, sequence DESC, rowid DESC LIMIT ?3) "
                          "AND image NOT IN (SELECT image FROM template_tags WHERE "
                          "tenant_id = ?1 AND name = ?2)",
                          tenant, name, kKeptTemplateVersions));
  return {};
}

Result<void> TemplateRows::make_current(const TemplateTag& tag) {
  int64_t tenant = tag.tenant.number();
  ATOLL_TRY([[maybe_unused]] int64_t before,
            database_.run("UPDATE templates SET current = 0 WHERE tenant_id = ? AND name = ?",
                          tenant, tag.name));
  ATOLL_TRY(int64_t made,
            database_.run("UPDATE templates SET current = 1 WHERE tenant_id = ? AND name = ? AND "
                          "image = ?",
                          tenant, tag.name, Blob(tag.image.bytes())));
  if (made == 0) return Error(Code::kNotFound, "there is no such version of " + tag.name);
  return {};
}

Result<void> TemplateRows::write_tag(const TemplateTag& tag) {
  if (tag.tag == kDefaultTag) return make_current(tag);
  int64_t tenant = tag.tenant.number();
  auto written = database_.run(
      "INSERT OR REPLACE INTO template_tags (tenant_id, name, tag, image, created_at_ms) "
      "VALUES (?, ?, ?, ?, ?)",
      tenant, tag.name, tag.tag, Blob(tag.image.bytes()), tag.created_at_ms);
  if (!written) return std::move(written).error().with_context("tag template " + tag.name);
  ATOLL_TRY(Query count, database_.query("SELECT count(*) FROM template_tags WHERE tenant_id = ? "
                                         "AND name = ?",
                                         tenant, tag.name));
  ATOLL_TRY([[maybe_unused]] bool found, count.next());
  if (count.int64() <= kMaxTemplateTags) return {};
  return Error(Code::kExhausted, "the template " + tag.name + " has 32 tags")
      .with_reason("too_many_tags");
}

Result<void> TemplateRows::put_tags(const std::vector<TemplateTag>& tags) {
  ATOLL_TRY(Transaction transaction, Transaction::begin(database_));
  for (const TemplateTag& tag : tags) ATOLL_TRY_VOID(write_tag(tag));
  for (const TemplateTag& tag : tags) ATOLL_TRY_VOID(forget_old(tag.tenant.number(), tag.name));
  return transaction.commit();
}

Result<void> TemplateRows::remove_tags(TenantId tenant, std::string_view name,
                                       const std::vector<std::string>& tags) {
  ATOLL_TRY(Transaction transaction, Transaction::begin(database_));
  for (const std::string& tag : tags) {
    ATOLL_TRY([[maybe_unused]] int64_t removed,
              database_.run("DELETE FROM template_tags WHERE tenant_id = ? AND name = ? AND "
                            "tag = ?",
                            tenant.number(), name, tag));
  }
  ATOLL_TRY_VOID(forget_old(tenant.number(), std::string(name)));
  return transaction.commit();
}

Result<std::vector<TemplateTag>> TemplateRows::all_tags() {
  ATOLL_TRY(Query query,
            database_.query("SELECT tenant_id, name, tag, image, created_at_ms FROM template_tags "
                            "ORDER BY tenant_id, name, tag"));
  std::vector<TemplateTag> tags;
  while (true) {
    ATOLL_TRY(bool found, query.next());
    if (!found) return tags;
    auto tenant = TenantId::from_number(query.int64());
    std::string name = query.text();
    std::string tag = query.text();
    auto image = Digest::from_bytes(query.blob<Digest::kBytes>());
    int64_t created_at_ms = query.int64();
    ATOLL_TRY_VOID(query.row_done());
    if (!tenant) return Error(Code::kCorrupt, "read tag " + tag + ": malformed tenant");
    tags.push_back({*tenant, std::move(name), std::move(tag), image, created_at_ms});
  }
}

Result<std::vector<TemplateRow>> TemplateRows::all() {
  ATOLL_TRY(Query query, database_.query("SELECT " TEMPLATE_COLUMNS " FROM templates ORDER BY "
                                         "tenant_id, name, current DESC, sequence DESC"));
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
