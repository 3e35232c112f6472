#include "store/exec_rows.h"

#include <algorithm>
#include <limits>

#include "store/sandbox_rows.h"

namespace atl::store {
namespace {

#define EXEC_COLUMNS                                                                              \
  "sandbox_id, tenant_id, exec, state, request, created_at_ms, pid, verdict, exit_code, signal, " \
  "stdout_bytes, stderr_bytes, stdout_cut, stderr_cut, start_us, wall_us, drain_us, user_us, "    \
  "system_us, peak_memory_bytes, read_bytes, written_bytes, peak_memory_scope, limits_hit, "      \
  "failure, sequence"

std::optional<int> small_or_null(Query& query, bool& fits) {
  auto value = query.int64_or_null();
  if (!value) return std::nullopt;
  if (*value < std::numeric_limits<int>::min() || *value > std::numeric_limits<int>::max()) {
    fits = false;
    return std::nullopt;
  }
  return static_cast<int>(*value);
}

Result<ExecRow> read_row(Query& query) {
  std::string sandbox_text = query.text();
  auto sandbox = SandboxId::parse(sandbox_text);
  auto tenant = TenantId::from_number(query.int64());
  auto id = ExecId::from_number(query.uint32());
  if (!sandbox || !tenant || !id)
    return Error(Code::kCorrupt, "read exec of '" + sandbox_text + "': malformed ids");
  ExecRow row{.sandbox = *sandbox, .tenant = *tenant, .id = *id};
  bool fits = true;
  row.state = query.text();
  row.request = query.text();
  row.created_at_ms = query.int64();
  row.pid = query.uint32();
  row.verdict = query.text();
  row.exit_code = small_or_null(query, fits);
  row.signal = small_or_null(query, fits);
  row.stdout_bytes = query.uint64();
  row.stderr_bytes = query.uint64();
  row.stdout_cut = query.uint64();
  row.stderr_cut = query.uint64();
  row.start_us = query.uint64();
  row.wall_us = query.uint64();
  row.drain_us = query.uint64();
  row.user_us = query.uint64();
  row.system_us = query.uint64();
  row.peak_memory_bytes = query.uint64();
  row.read_bytes = query.uint64();
  row.written_bytes = query.uint64();
  row.peak_memory_scope = query.text();
  row.limits_hit = query.uint32();
  row.failure = query.text();
  row.sequence = query.int64();
  ATOLL_TRY_VOID(query.row_done());
  if (!fits) return Error(Code::kCorrupt, "read exec of " + sandbox_text + ": number too large");
  return row;
}

Result<std::vector<ExecRow>> read_rows(Query query) {
  std::vector<ExecRow> rows;
  while (true) {
    ATOLL_TRY(bool found, query.next());
    if (!found) return rows;
    ATOLL_TRY(ExecRow row, read_row(query));
    rows.push_back(std::move(row));
  }
}

Result<ExecId> take_number(Database& database, TenantId tenant, const SandboxId& sandbox) {
  ATOLL_TRY(Query query, database.query("UPDATE sandboxes SET next_exec = next_exec + 1 "
                                        "WHERE tenant_id = ? AND sandbox_id = ? "
                                        "RETURNING next_exec - 1",
                                        tenant.number(), sandbox.view()));
  ATOLL_TRY(bool found, query.next());
  if (!found) return Error(Code::kNotFound, "sandbox " + sandbox.string() + ": no such sandbox");
  auto id = ExecId::from_number(query.uint32());
  ATOLL_TRY_VOID(query.row_done());
  ATOLL_TRY_VOID(query.run());
  if (!id)
    return Error(Code::kExhausted, "sandbox " + sandbox.string() + ": has had too many execs");
  return *id;
}

std::span<const unsigned char> bytes_of(const std::string& text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

Result<void> insert_row(Database& database, const ExecRow& row) {
  auto inserted = database.run(
      "INSERT INTO execs (sandbox_id, tenant_id, exec, request, created_at_ms, sequence, record) "
      "VALUES (?, ?, ?, ?, ?, ?, ?)",
      row.sandbox.view(), row.tenant.number(), row.id.number(), row.request, row.created_at_ms,
      row.sequence, Blob(bytes_of(row.record)));
  if (inserted) return {};
  return std::move(inserted).error().with_context("insert exec " + row.id.string() + " of " +
                                                  row.sandbox.string());
}

}  // namespace

Result<ExecId> ExecRows::insert(TenantId tenant, const SandboxId& sandbox, std::string_view request,
                                int64_t created_at_ms) {
  ATOLL_TRY(Transaction transaction, Transaction::begin(database_));
  ATOLL_TRY(ExecId id, take_number(database_, tenant, sandbox));
  ExecRow row{.sandbox = sandbox, .tenant = tenant, .id = id};
  row.request = request;
  row.created_at_ms = created_at_ms;
  ATOLL_TRY_VOID(insert_row(database_, row));
  ATOLL_TRY_VOID(transaction.commit());
  return id;
}

Result<void> ExecRows::insert(const ExecRow& row) {
  ATOLL_TRY(Transaction transaction, Transaction::begin(database_));
  ATOLL_TRY_VOID(insert_within(transaction, row));
  return transaction.commit();
}

Result<void> ExecRows::insert_within(const Transaction&, const ExecRow& row) {
  ATOLL_TRY(
      int64_t changed,
      database_.run("UPDATE sandboxes SET next_exec = ? + 1 "
                    "WHERE tenant_id = ? AND sandbox_id = ? AND next_exec <= ?",
                    row.id.number(), row.tenant.number(), row.sandbox.view(), row.id.number()));
  if (changed == 0)
    return Error(Code::kNotFound, "sandbox " + row.sandbox.string() +
                                      ": not there, or it has had " + row.id.string() + " before");
  return insert_row(database_, row);
}

Result<std::optional<std::string>> ExecRows::find_record(TenantId tenant, const SandboxId& sandbox,
                                                         ExecId id) {
  ATOLL_TRY(Query query, database_.query("SELECT record FROM execs WHERE tenant_id = ? "
                                         "AND sandbox_id = ? AND exec = ?",
                                         tenant.number(), sandbox.view(), id.number()));
  ATOLL_TRY(bool found, query.next());
  if (!found) return std::optional<std::string>();
  std::string record = query.bytes();
  ATOLL_TRY_VOID(query.row_done());
  return record.empty() ? std::nullopt : std::optional(std::move(record));
}

Result<void> ExecRows::explain_unchanged(TenantId tenant, const SandboxId& sandbox, ExecId id) {
  std::string what = "exec " + id.string() + " of " + sandbox.string();
  ATOLL_TRY(auto row, find(tenant, sandbox, id));
  if (!row) return Error(Code::kNotFound, what + ": no such exec");
  return Error(Code::kConflict, what + ": has ended");
}

Result<void> ExecRows::set_started(TenantId tenant, const SandboxId& sandbox, ExecId id,
                                   uint32_t pid) {
  ATOLL_TRY(int64_t changed,
            database_.run("UPDATE execs SET pid = ? WHERE tenant_id = ? AND sandbox_id = ? "
                          "AND exec = ? AND state = 'running'",
                          pid, tenant.number(), sandbox.view(), id.number()));
  if (changed == 0) return explain_unchanged(tenant, sandbox, id);
  return {};
}

Result<void> ExecRows::finish(const ExecRow& row) {
  auto changed = database_.run(
      "UPDATE execs SET state = 'ended', verdict = ?, exit_code = ?, signal = ?, stdout_bytes = ?, "
      "stderr_bytes = ?, stdout_cut = ?, stderr_cut = ?, start_us = ?, wall_us = ?, drain_us = ?, "
      "user_us = ?, system_us = ?, peak_memory_bytes = ?, read_bytes = ?, written_bytes = ?, "
      "peak_memory_scope = ?, limits_hit = ?, failure = ?, pid = coalesce(nullif(?, 0), pid) "
      "WHERE tenant_id = ? AND sandbox_id = ? AND exec = ? AND state = 'running'",
      row.verdict, row.exit_code, row.signal, row.stdout_bytes, row.stderr_bytes, row.stdout_cut,
      row.stderr_cut, row.start_us, row.wall_us, row.drain_us, row.user_us, row.system_us,
      row.peak_memory_bytes, row.read_bytes, row.written_bytes, row.peak_memory_scope,
      row.limits_hit, row.failure, row.pid, row.tenant.number(), row.sandbox.view(),
      row.id.number());
  if (!changed)
    return std::move(changed).error().with_context("finish exec " + row.id.string() + " of " +
                                                   row.sandbox.string());
  if (*changed == 0) return explain_unchanged(row.tenant, row.sandbox, row.id);
  return {};
}

Result<std::optional<ExecRow>> ExecRows::find(TenantId tenant, const SandboxId& sandbox,
                                              ExecId id) {
  ATOLL_TRY(Query query, database_.query("SELECT " EXEC_COLUMNS " FROM execs WHERE tenant_id = ? "
                                         "AND sandbox_id = ? AND exec = ?",
                                         tenant.number(), sandbox.view(), id.number()));
  ATOLL_TRY(bool found, query.next());
  if (!found) return std::optional<ExecRow>();
  ATOLL_TRY(ExecRow row, read_row(query));
  return std::optional(std::move(row));
}

Result<std::vector<ExecRow>> ExecRows::list(TenantId tenant, const SandboxId& sandbox,
                                            std::optional<ExecId> after, size_t limit) {
  ATOLL_TRY(Query query,
            database_.query("SELECT " EXEC_COLUMNS " FROM execs WHERE tenant_id = ? "
                            "AND sandbox_id = ? AND exec > ? ORDER BY exec LIMIT ?",
                            tenant.number(), sandbox.view(), after ? after->number() : 0u,
                            uint64_t{std::min(limit, kMaxPageRows)}));
  return read_rows(std::move(query));
}

Result<std::vector<ExecRow>> ExecRows::all_running(const SandboxId& sandbox) {
  ATOLL_TRY(Query query, database_.query("SELECT " EXEC_COLUMNS " FROM execs WHERE sandbox_id = ? "
                                         "AND state = 'running' ORDER BY exec",
                                         sandbox.view()));
  return read_rows(std::move(query));
}

}  // namespace atl::store
