#include "store/snapshot_rows.h"

#include <algorithm>
#include <limits>

#include "store/place.h"

namespace atl::store {
namespace {

#define SNAPSHOT_COLUMNS                                                                   \
  "snapshot_id, tenant_id, sandbox_id, image, parent_id, label, metadata, reason, bytes, " \
  "created_at_ms, template_name, cpu_millis, memory_bytes, pids, disk_bytes, manifest, "   \
  "sealed_bytes, isolation, sequence, cut_sequence"

Result<SnapshotRow> read_row(Query& query) {
  std::string text = query.text();
  auto id = SnapshotId::parse(text);
  auto tenant = TenantId::from_number(query.int64());
  auto sandbox = SandboxId::parse(query.text());
  Digest image = Digest::from_bytes(query.blob<Digest::kBytes>());
  if (!id || !tenant || !sandbox)
    return Error(Code::kCorrupt, "read snapshot '" + text + "': malformed ids");
  SnapshotRow row{.id = *id, .tenant = *tenant, .sandbox = *sandbox, .image = image};
  if (auto parent = query.text_or_null()) row.parent = SnapshotId::parse(*parent);
  row.label = query.text();
  row.metadata = query.text();
  row.reason = query.text();
  row.bytes = query.uint64();
  row.created_at_ms = query.int64();
  row.template_name = query.text();
  row.cpu_millis = query.uint32();
  row.memory_bytes = query.uint64();
  row.pids = query.uint32();
  row.disk_bytes = query.uint64();
  if (auto manifest = query.text_or_null()) row.manifest = Digest::parse(*manifest);
  row.sealed_bytes = query.uint64();
  row.isolation = query.text_or_null().value_or("");
  row.sequence = query.int64();
  row.cut_sequence = query.int64();
  ATOLL_TRY_VOID(query.row_done());
  return row;
}

Result<std::vector<SnapshotRow>> read_rows(Query query) {
  std::vector<SnapshotRow> rows;
  while (true) {
    ATOLL_TRY(bool found, query.next());
    if (!found) return rows;
    ATOLL_TRY(SnapshotRow row, read_row(query));
    rows.push_back(std::move(row));
  }
}

std::optional<std::string_view> text_of(const std::optional<SnapshotId>& id) {
  return id ? std::optional(id->view()) : std::nullopt;
}

std::optional<std::string> text_of(const std::optional<Digest>& digest) {
  return digest ? std::optional(digest->string()) : std::nullopt;
}

Result<std::vector<Digest>> read_manifests(Query query) {
  std::vector<Digest> manifests;
  while (true) {
    ATOLL_TRY(bool found, query.next());
    if (!found) return manifests;
    auto manifest = Digest::parse(query.text());
    if (!manifest) return Error(Code::kCorrupt, "read snapshots: a malformed manifest");
    manifests.push_back(*manifest);
    ATOLL_TRY_VOID(query.row_done());
  }
}

Result<uint64_t> single_number(Query query) {
  ATOLL_TRY(bool found, query.next());
  ATOLL_CHECK(found);
  uint64_t number = query.uint64();
  ATOLL_TRY_VOID(query.row_done());
  return number;
}

}  // namespace

std::string SnapshotCursor::string() const { return write_place({sequence, id.view()}); }

std::optional<SnapshotCursor> SnapshotCursor::parse(std::string_view text) {
  std::optional<Place> place = read_place(text);
  auto id = place ? SnapshotId::parse(place->id) : std::nullopt;
  return id ? std::optional(SnapshotCursor{place->sequence, *id}) : std::nullopt;
}

Result<void> SnapshotRows::insert(const SnapshotRow& row) {
  ATOLL_TRY(Transaction transaction, Transaction::begin(database_));
  std::optional<std::string_view> isolation;
  if (!row.isolation.empty()) isolation = row.isolation;
  auto inserted = database_.run(
      "INSERT INTO snapshots (" SNAPSHOT_COLUMNS
      ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      row.id.view(), row.tenant.number(), row.sandbox.view(), Blob(row.image.bytes()),
      text_of(row.parent), row.label, row.metadata, row.reason, row.bytes, row.created_at_ms,
      row.template_name, row.cpu_millis, row.memory_bytes, row.pids, row.disk_bytes,
      text_of(row.manifest), row.sealed_bytes, isolation, row.sequence, row.cut_sequence);
  if (!inserted) return std::move(inserted).error().with_context("insert snapshot");
  ATOLL_TRY([[maybe_unused]] int64_t changed,
            database_.run("UPDATE sandboxes SET snapshot_id = ? "
                          "WHERE tenant_id = ? AND sandbox_id = ?",
                          row.id.view(), row.tenant.number(), row.sandbox.view()));
  return transaction.commit();
}

Result<std::optional<SnapshotRow>> SnapshotRows::find(TenantId tenant, const SnapshotId& id) {
  ATOLL_TRY(Query query, database_.query("SELECT " SNAPSHOT_COLUMNS " FROM snapshots "
                                         "WHERE tenant_id = ? AND snapshot_id = ?",
                                         tenant.number(), id.view()));
  ATOLL_TRY(bool found, query.next());
  if (!found) return std::optional<SnapshotRow>();
  ATOLL_TRY(SnapshotRow row, read_row(query));
  return std::optional(std::move(row));
}

Result<std::vector<SnapshotRow>> SnapshotRows::list(TenantId tenant, const SnapshotQuery& wanted) {
  std::optional<std::string_view> sandbox;
  if (wanted.sandbox) sandbox = wanted.sandbox->view();
  const std::optional<SnapshotCursor>& after = wanted.after;
  int64_t sequence = after ? after->sequence : std::numeric_limits<int64_t>::min();
  std::string_view id = after ? after->id.view() : std::string_view();
  ATOLL_TRY(Query query,
            database_.query("SELECT " SNAPSHOT_COLUMNS " FROM snapshots WHERE tenant_id = ? "
                            "AND (sequence, snapshot_id) > (?, ?) "
                            "AND sandbox_id = coalesce(?, sandbox_id) "
                            "ORDER BY sequence, snapshot_id LIMIT ?",
                            tenant.number(), sequence, id, sandbox,
                            uint64_t{std::min(wanted.limit, kMaxPageRows)}));
  return read_rows(std::move(query));
}

Result<uint64_t> SnapshotRows::count(TenantId tenant) {
  ATOLL_TRY(Query query,
            database_.query("SELECT count(*) FROM snapshots WHERE tenant_id = ?", tenant.number()));
  return single_number(std::move(query));
}

Result<std::optional<SnapshotId>> SnapshotRows::remove(TenantId tenant, const SnapshotId& id,
                                                       Orphans orphans) {
  ATOLL_TRY(Transaction transaction, Transaction::begin(database_));
  ATOLL_TRY(std::optional<SnapshotRow> row, find(tenant, id));
  if (!row) return Error(Code::kNotFound, "there is no snapshot " + id.string());
  ATOLL_TRY(Query query, database_.query("SELECT count(*) FROM snapshots "
                                         "WHERE tenant_id = ? AND parent_id = ?",
                                         tenant.number(), id.view()));
  ATOLL_TRY(uint64_t children, single_number(std::move(query)));
  if (children > 0 && orphans == Orphans::kRefuse)
    return Error(Code::kConflict, "the snapshot has " + std::to_string(children) + " children")
        .with_reason("snapshot_has_children");
  ATOLL_TRY([[maybe_unused]] int64_t adopted,
            database_.run("UPDATE snapshots SET parent_id = ? WHERE tenant_id = ? "
                          "AND parent_id = ?",
                          text_of(row->parent), tenant.number(), id.view()));
  ATOLL_TRY([[maybe_unused]] int64_t moved,
            database_.run("UPDATE sandboxes SET snapshot_id = ? WHERE tenant_id = ? "
                          "AND snapshot_id = ?",
                          text_of(row->parent), tenant.number(), id.view()));
  ATOLL_TRY([[maybe_unused]] int64_t removed,
            database_.run("DELETE FROM snapshots WHERE tenant_id = ? AND snapshot_id = ?",
                          tenant.number(), id.view()));
  ATOLL_TRY_VOID(transaction.commit());
  return row->parent;
}

Result<void> SnapshotRows::set_sealed(const SnapshotRow& row) {
  ATOLL_TRY(int64_t changed, database_.run("UPDATE snapshots SET manifest = ?, sealed_bytes = ? "
                                           "WHERE tenant_id = ? AND snapshot_id = ?",
                                           text_of(row.manifest), row.sealed_bytes,
                                           row.tenant.number(), row.id.view()));
  if (changed == 1) return {};
  return Error(Code::kNotFound, "there is no snapshot " + row.id.string());
}

Result<std::vector<Digest>> SnapshotRows::manifests(TenantId tenant) {
  ATOLL_TRY(Query query, database_.query("SELECT manifest FROM snapshots WHERE tenant_id = ? "
                                         "AND manifest IS NOT NULL",
                                         tenant.number()));
  return read_manifests(std::move(query));
}

Result<std::vector<Digest>> SnapshotRows::all_manifests() {
  ATOLL_TRY(Query query,
            database_.query("SELECT manifest FROM snapshots WHERE manifest IS NOT NULL"));
  return read_manifests(std::move(query));
}

Result<std::vector<SnapshotRow>> SnapshotRows::all() {
  ATOLL_TRY(Query query, database_.query("SELECT " SNAPSHOT_COLUMNS " FROM snapshots "
                                         "ORDER BY sequence, snapshot_id"));
  return read_rows(std::move(query));
}

Result<std::vector<Digest>> SnapshotRows::all_images() {
  ATOLL_TRY(Query query, database_.query("SELECT DISTINCT image FROM snapshots"));
  std::vector<Digest> images;
  while (true) {
    ATOLL_TRY(bool found, query.next());
    if (!found) return images;
    images.push_back(Digest::from_bytes(query.blob<Digest::kBytes>()));
    ATOLL_TRY_VOID(query.row_done());
  }
}

}  // namespace atl::store
