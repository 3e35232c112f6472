#include "store/sandbox_rows.h"

#include <algorithm>
#include <limits>

#include "store/place.h"

namespace atl::store {
namespace {

#define SANDBOX_COLUMNS                                                                        \
  "sandbox_id, tenant_id, image, name, state, template_name, cpu_millis, memory_bytes, pids, " \
  "disk_bytes, output_bytes, open_files, disk_bytes_per_second, on_oom, cpu_time_ms, "         \
  "required_extras, ttl_ms, idle_ttl_ms, nonce, metadata, environment, created_at_ms, "        \
  "failure, generation, next_exec, ttl_from_ms, limits_unsettled, network, "                   \
  "on_ttl, auto_resume, paused_at_ms, snapshot_id, inherited_bytes, restoring, checkpoint, "   \
  "isolation, volumes, persistence, exec_user, exec_directory, transient, "                    \
  "files_only_after_ms, released, files_only_under_pressure, sequence, paused_sequence"

// What a sandbox is shown as.
#define SHOWN_STATE "iif(state = 'running' AND paused_at_ms <> 0, 'paused', state)"

Result<SandboxRow> read_row(Query& query) {
  std::string id_text = query.text();
  auto id = SandboxId::parse(id_text);
  auto tenant = TenantId::from_number(query.int64());
  Digest image = Digest::from_bytes(query.blob<Digest::kBytes>());
  if (!id || !tenant)
    return Error(Code::kCorrupt, "read sandbox '" + id_text + "': malformed id or tenant");
  SandboxRow row{.id = *id, .tenant = *tenant, .image = image};
  row.name = query.text_or_null();
  row.state = query.text();
  row.template_name = query.text();
  row.cpu_millis = query.uint32();
  row.memory_bytes = query.uint64();
  row.pids = query.uint32();
  row.disk_bytes = query.uint64();
  row.output_bytes = query.uint64();
  row.open_files = query.uint32();
  row.disk_bytes_per_second = query.uint64();
  row.on_oom = query.text();
  row.cpu_time_ms = query.uint32();
  row.required_extras = query.uint32();
  row.ttl_ms = query.uint64();
  row.idle_ttl_ms = query.uint64();
  row.nonce = query.blob<16>();
  row.metadata = query.text();
  row.environment = query.text();
  row.created_at_ms = query.int64();
  row.failure = query.text();
  row.generation = query.uint32();
  row.next_exec = query.uint32();
  row.ttl_from_ms = query.int64();
  row.limits_unsettled = query.uint32() != 0;
  row.network = query.text();
  row.on_ttl = query.text();
  row.auto_resume = query.uint32() != 0;
  row.paused_at_ms = query.int64();
  if (auto snapshot = query.text_or_null()) row.snapshot = SnapshotId::parse(*snapshot);
  row.inherited_bytes = query.uint64();
  row.restoring = query.uint32() != 0;
  row.checkpoint = query.text();
  row.isolation = query.text();
  std::string volumes = query.text();
  row.persistence = query.text();
  row.user = query.text();
  row.directory = query.text();
  row.transient = query.uint32() != 0;
  row.files_only_after_ms = query.uint64();
  row.released = query.text_or_null();
  row.files_only_under_pressure = query.uint32() != 0;
  row.sequence = query.int64();
  row.paused_sequence = query.int64();
  ATOLL_TRY_VOID(query.row_done());
  ATOLL_TRY(row.volumes, decode_volume_uses(volumes));
  return row;
}

Result<std::vector<SandboxRow>> read_rows(Query query) {
  std::vector<SandboxRow> rows;
  while (true) {
    ATOLL_TRY(bool found, query.next());
    if (!found) return rows;
    ATOLL_TRY(SandboxRow row, read_row(query));
    rows.push_back(std::move(row));
  }
}

Error no_such_sandbox(const SandboxId& id) {
  return Error(Code::kNotFound, "sandbox " + id.string() + ": no such sandbox");
}

}  // namespace

std::string SandboxCursor::string() const { return write_place({sequence, id.view()}); }

std::optional<SandboxCursor> SandboxCursor::parse(std::string_view text) {
  std::optional<Place> place = read_place(text);
  auto id = place ? SandboxId::parse(place->id) : std::nullopt;
  return id ? std::optional(SandboxCursor{place->sequence, *id}) : std::nullopt;
}

Result<void> SandboxRows::insert(const SandboxRow& row) {
  std::optional<std::string_view> snapshot;
  if (row.snapshot) snapshot = row.snapshot->view();
  auto inserted = database_.run(
      "INSERT INTO sandboxes (" SANDBOX_COLUMNS
      ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
      "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      row.id.view(), row.tenant.number(), Blob(row.image.bytes()), row.name, row.state,
      row.template_name, row.cpu_millis, row.memory_bytes, row.pids, row.disk_bytes,
      row.output_bytes, row.open_files, row.disk_bytes_per_second, row.on_oom, row.cpu_time_ms,
      row.required_extras, row.ttl_ms, row.idle_ttl_ms, Blob(row.nonce), row.metadata,
      row.environment, row.created_at_ms, row.failure, row.generation, row.next_exec,
      row.ttl_from_ms, uint32_t{row.limits_unsettled}, row.network, row.on_ttl,
      uint32_t{row.auto_resume}, row.paused_at_ms, snapshot, row.inherited_bytes,
      uint32_t{row.restoring}, row.checkpoint, row.isolation, encode_volume_uses(row.volumes),
      row.persistence, row.user, row.directory, uint32_t{row.transient}, row.files_only_after_ms,
      row.released, uint32_t{row.files_only_under_pressure}, row.sequence, row.paused_sequence);
  if (inserted) return {};
  Error error = std::move(inserted).error();
  if (row.name && error.code() == Code::kConflict)
    return Error(Code::kConflict, "there is a sandbox of the name " + *row.name)
        .with_reason("name_taken");
  return std::move(error).with_context("insert sandbox " + row.id.string());
}

Result<void> SandboxRows::set_state(TenantId tenant, const SandboxId& id, std::string_view state,
                                    std::string_view failure) {
  ATOLL_TRY(int64_t changed, database_.run("UPDATE sandboxes SET state = ?, failure = ? "
                                           "WHERE tenant_id = ? AND sandbox_id = ?",
                                           state, failure, tenant.number(), id.view()));
  if (changed == 0) return no_such_sandbox(id);
  return {};
}

Result<void> SandboxRows::set_paused(const SandboxRow& row) {
  ATOLL_TRY(int64_t changed,
            database_.run("UPDATE sandboxes SET paused_at_ms = ?, paused_sequence = ?, "
                          "ttl_from_ms = ?, released = ? WHERE tenant_id = ? AND sandbox_id = ?",
                          row.paused_at_ms, row.paused_sequence, row.ttl_from_ms, row.released,
                          row.tenant.number(), row.id.view()));
  if (changed == 0) return no_such_sandbox(row.id);
  return {};
}

Result<void> SandboxRows::set_restoring(const SandboxRow& row) {
  std::optional<std::string_view> snapshot;
  if (row.snapshot) snapshot = row.snapshot->view();
  ATOLL_TRY(int64_t changed,
            database_.run("UPDATE sandboxes SET snapshot_id = ?, inherited_bytes = ?, "
                          "generation = ?, nonce = ?, restoring = ? "
                          "WHERE tenant_id = ? AND sandbox_id = ?",
                          snapshot, row.inherited_bytes, row.generation, Blob(row.nonce),
                          uint32_t{row.restoring}, row.tenant.number(), row.id.view()));
  if (changed == 0) return no_such_sandbox(row.id);
  return {};
}

Result<void> SandboxRows::change(const SandboxRow& row) {
  ATOLL_TRY(
      int64_t changed,
      database_.run("UPDATE sandboxes SET cpu_millis = ?, memory_bytes = ?, pids = ?, "
                    "disk_bytes = ?, output_bytes = ?, open_files = ?, disk_bytes_per_second = ?, "
                    "cpu_time_ms = ?, ttl_ms = ?, ttl_from_ms = ?, idle_ttl_ms = ?, metadata = ?, "
                    "limits_unsettled = ?, network = ?, on_ttl = ?, auto_resume = ?, "
                    "checkpoint = ?, files_only_after_ms = ?, files_only_under_pressure = ? "
                    "WHERE tenant_id = ? AND sandbox_id = ?",
                    row.cpu_millis, row.memory_bytes, row.pids, row.disk_bytes, row.output_bytes,
                    row.open_files, row.disk_bytes_per_second, row.cpu_time_ms, row.ttl_ms,
                    row.ttl_from_ms, row.idle_ttl_ms, row.metadata, uint32_t{row.limits_unsettled},
                    row.network, row.on_ttl, uint32_t{row.auto_resume}, row.checkpoint,
                    row.files_only_after_ms, uint32_t{row.files_only_under_pressure},
                    row.tenant.number(), row.id.view()));
  if (changed == 0) return no_such_sandbox(row.id);
  return {};
}

Result<void> SandboxRows::remove(TenantId tenant, const SandboxId& id) {
  ATOLL_TRY(int64_t changed,
            database_.run("DELETE FROM sandboxes WHERE tenant_id = ? AND sandbox_id = ?",
                          tenant.number(), id.view()));
  if (changed == 0) return no_such_sandbox(id);
  return {};
}

Result<std::optional<SandboxRow>> SandboxRows::find(TenantId tenant, const SandboxId& id) {
  ATOLL_TRY(Query query, database_.query("SELECT " SANDBOX_COLUMNS " FROM sandboxes "
                                         "WHERE tenant_id = ? AND sandbox_id = ?",
                                         tenant.number(), id.view()));
  ATOLL_TRY(bool found, query.next());
  if (!found) return std::optional<SandboxRow>();
  ATOLL_TRY(SandboxRow row, read_row(query));
  return std::optional(std::move(row));
}

Result<std::vector<SandboxRow>> SandboxRows::list(TenantId tenant, const SandboxQuery& wanted) {
  const std::optional<SandboxCursor>& after = wanted.after;
  // Without a cursor: before any row that can be.
  int64_t sequence = after ? after->sequence : std::numeric_limits<int64_t>::min();
  std::string_view id = after ? after->id.view() : std::string_view();
  ATOLL_TRY(Query query,
            database_.query("SELECT " SANDBOX_COLUMNS " FROM sandboxes "
                            "WHERE tenant_id = ? AND (sequence, sandbox_id) > (?, ?) "
                            "AND transient = 0 AND " SHOWN_STATE " = coalesce(?, " SHOWN_STATE ") "
                            "AND NOT EXISTS (SELECT 1 FROM json_each(?) AS pair WHERE NOT EXISTS "
                            "(SELECT 1 FROM json_each(sandboxes.metadata) AS held "
                            "WHERE held.key = pair.value ->> 0 AND held.value = pair.value ->> 1)) "
                            "ORDER BY sequence, sandbox_id LIMIT ?",
                            tenant.number(), sequence, id, wanted.state, wanted.metadata,
                            uint64_t{std::min(wanted.limit, kMaxPageRows)}));
  return read_rows(std::move(query));
}

Result<uint64_t> SandboxRows::count(TenantId tenant) {
  ATOLL_TRY(Query query,
            database_.query("SELECT count(*) FROM sandboxes WHERE tenant_id = ?", tenant.number()));
  ATOLL_TRY(bool found, query.next());
  ATOLL_CHECK(found);
  uint64_t number = query.uint64();
  ATOLL_TRY_VOID(query.row_done());
  return number;
}

Result<std::vector<Digest>> SandboxRows::all_images() {
  ATOLL_TRY(Query query, database_.query("SELECT DISTINCT image FROM sandboxes"));
  std::vector<Digest> images;
  while (true) {
    ATOLL_TRY(bool found, query.next());
    if (!found) return images;
    images.push_back(Digest::from_bytes(query.blob<Digest::kBytes>()));
    ATOLL_TRY_VOID(query.row_done());
  }
}

Result<std::vector<SandboxRow>> SandboxRows::all() {
  ATOLL_TRY(Query query, database_.query("SELECT " SANDBOX_COLUMNS " FROM sandboxes "
                                         "ORDER BY sequence, sandbox_id"));
  return read_rows(std::move(query));
}

}  // namespace atl::store
