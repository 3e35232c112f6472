#include "store/context_rows.h"

namespace atl::store {
namespace {

#define CONTEXT_COLUMNS                                                                \
  "sandbox_id, tenant_id, context_id, language, directory, environment, description, " \
  "exec, next_run, created_at_ms"
#define RUN_COLUMNS                                                                              \
  "sandbox_id, tenant_id, context_id, run, state, code, environment, timeout_ms, "               \
  "created_at_ms, started_at_ms, exec, input_offset, stdout_begin, stderr_begin, speech_begin, " \
  "marks_begin, stdout_end, stderr_end, speech_end, wall_us, verdict, exit_code, signal, "       \
  "limits_hit, state_lost, failure, frozen_ms, sequence"

struct Ids {
  SandboxId sandbox;
  TenantId tenant;
  ContextId context;
};

Result<Ids> read_ids(Query& query) {
  auto sandbox = SandboxId::parse(query.text());
  auto tenant = TenantId::from_number(query.int64());
  auto context = ContextId::parse(query.text());
  if (!sandbox || !tenant || !context)
    return Error(Code::kCorrupt, "read a context: malformed ids");
  return Ids{*sandbox, *tenant, *context};
}

Result<ContextRow> read_context(Query& query) {
  ATOLL_TRY(Ids ids, read_ids(query));
  ContextRow row{.sandbox = ids.sandbox, .tenant = ids.tenant, .id = ids.context};
  row.language = query.text();
  row.directory = query.text();
  row.environment = query.text();
  row.description = query.text();
  row.exec = query.uint32();
  row.next_run = query.uint32();
  row.created_at_ms = query.int64();
  ATOLL_TRY_VOID(query.row_done());
  return row;
}

std::optional<int> small_or_null(Query& query) {
  auto value = query.int64_or_null();
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

Result<RunRow> read_run(Query& query) {
  ATOLL_TRY(Ids ids, read_ids(query));
  RunRow row{.sandbox = ids.sandbox, .tenant = ids.tenant, .context = ids.context};
  row.number = query.uint32();
  row.state = query.text();
  row.code = query.text();
  row.environment = query.text();
  row.timeout_ms = query.uint32();
  row.created_at_ms = query.int64();
  row.started_at_ms = query.int64();
  row.exec = query.uint32();
  for (uint64_t* offset :
       {&row.input_offset, &row.stdout_begin, &row.stderr_begin, &row.speech_begin,
        &row.marks_begin, &row.stdout_end, &row.stderr_end, &row.speech_end, &row.wall_us})
    *offset = query.uint64();
  row.verdict = query.text();
  row.exit_code = small_or_null(query);
  row.signal = small_or_null(query);
  row.limits_hit = query.uint32();
  row.state_lost = query.uint32() == 1;
  row.failure = query.text();
  row.frozen_ms = query.uint64();
  row.sequence = query.int64();
  ATOLL_TRY_VOID(query.row_done());
  return row;
}

Result<std::vector<RunRow>> read_runs(Query query) {
  std::vector<RunRow> rows;
  while (true) {
    ATOLL_TRY(bool found, query.next());
    if (!found) return rows;
    ATOLL_TRY(RunRow row, read_run(query));
    rows.push_back(std::move(row));
  }
}

}  // namespace

Result<void> ContextRows::insert(const ContextRow& row) {
  ATOLL_TRY([[maybe_unused]] int64_t changed,
            database_.run("INSERT INTO contexts (" CONTEXT_COLUMNS ", place) "
                          "SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, coalesce(max(place), 0) + 1 "
                          "FROM contexts WHERE sandbox_id = ?",
                          row.sandbox.view(), row.tenant.number(), row.id.view(), row.language,
                          row.directory, row.environment, row.description, row.exec, row.next_run,
                          row.created_at_ms, row.sandbox.view()));
  return {};
}

Result<void> ContextRows::set_exec(const ContextRow& row, uint32_t exec) {
  ATOLL_TRY(int64_t changed,
            database_.run("UPDATE contexts SET exec = ? WHERE tenant_id = ? AND sandbox_id = ? "
                          "AND context_id = ?",
                          exec, row.tenant.number(), row.sandbox.view(), row.id.view()));
  if (changed == 0) return Error(Code::kNotFound, "context " + row.id.string() + " is gone");
  return {};
}

Result<void> ContextRows::remove(const ContextRow& row) {
  ATOLL_TRY([[maybe_unused]] int64_t changed,
            database_.run("DELETE FROM contexts WHERE tenant_id = ? AND sandbox_id = ? "
                          "AND context_id = ?",
                          row.tenant.number(), row.sandbox.view(), row.id.view()));
  return {};
}

Result<void> ContextRows::insert_run(const RunRow& row) {
  ATOLL_TRY(Transaction transaction, Transaction::begin(database_));
  ATOLL_TRY_VOID(insert_run_within(transaction, row));
  return transaction.commit();
}

Result<void> ContextRows::insert_run_within(const Transaction&, const RunRow& row) {
  ATOLL_TRY(int64_t changed,
            database_.run("UPDATE contexts SET next_run = ? + 1 WHERE tenant_id = ? "
                          "AND sandbox_id = ? AND context_id = ? AND next_run <= ?",
                          row.number, row.tenant.number(), row.sandbox.view(), row.context.view(),
                          row.number));
  if (changed == 0)
    return Error(Code::kNotFound, "context " + row.context.string() +
                                      ": not there, or it has had run " +
                                      std::to_string(row.number) + " before");
  ATOLL_TRY([[maybe_unused]] int64_t inserted,
            database_.run("INSERT INTO context_runs (sandbox_id, tenant_id, context_id, run, "
                          "state, code, environment, timeout_ms, created_at_ms, started_at_ms, "
                          "exec, input_offset, stdout_begin, stderr_begin, speech_begin, "
                          "marks_begin, sequence) "
                          "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                          row.sandbox.view(), row.tenant.number(), row.context.view(), row.number,
                          row.state, row.code, row.environment, row.timeout_ms, row.created_at_ms,
                          row.started_at_ms, row.exec, row.input_offset, row.stdout_begin,
                          row.stderr_begin, row.speech_begin, row.marks_begin, row.sequence));
  return {};
}

Result<void> ContextRows::update_run(const RunRow& row) {
  ATOLL_TRY(
      [[maybe_unused]] int64_t changed,
      database_.run(
          "UPDATE context_runs SET state = ?, started_at_ms = ?, exec = ?, input_offset = ?, "
          "stdout_begin = ?, stderr_begin = ?, speech_begin = ?, marks_begin = ?, stdout_end = ?, "
          "stderr_end = ?, speech_end = ?, wall_us = ?, verdict = ?, exit_code = ?, signal = ?, "
          "limits_hit = ?, state_lost = ?, failure = ?, frozen_ms = ? "
          "WHERE tenant_id = ? AND sandbox_id = ? "
          "AND context_id = ? AND run = ? AND state <> 'ended'",
          row.state, row.started_at_ms, row.exec, row.input_offset, row.stdout_begin,
          row.stderr_begin, row.speech_begin, row.marks_begin, row.stdout_end, row.stderr_end,
          row.speech_end, row.wall_us, row.verdict, row.exit_code, row.signal, row.limits_hit,
          row.state_lost ? 1 : 0, row.failure, row.frozen_ms, row.tenant.number(),
          row.sandbox.view(), row.context.view(), row.number));
  return {};
}

Result<std::optional<RunRow>> ContextRows::find_run(TenantId tenant, const SandboxId& sandbox,
                                                    const ContextId& context, uint32_t number) {
  ATOLL_TRY(Query query, database_.query("SELECT " RUN_COLUMNS " FROM context_runs "
                                         "WHERE tenant_id = ? AND sandbox_id = ? "
                                         "AND context_id = ? AND run = ?",
                                         tenant.number(), sandbox.view(), context.view(), number));
  ATOLL_TRY(bool found, query.next());
  if (!found) return std::optional<RunRow>();
  ATOLL_TRY(RunRow row, read_run(query));
  return std::optional(std::move(row));
}

Result<std::vector<ContextRow>> ContextRows::all(const SandboxId& sandbox) {
  ATOLL_TRY(Query query, database_.query("SELECT " CONTEXT_COLUMNS " FROM contexts "
                                         "WHERE sandbox_id = ? ORDER BY place",
                                         sandbox.view()));
  std::vector<ContextRow> rows;
  while (true) {
    ATOLL_TRY(bool found, query.next());
    if (!found) return rows;
    ATOLL_TRY(ContextRow row, read_context(query));
    rows.push_back(std::move(row));
  }
}

Result<std::vector<RunRow>> ContextRows::runs_since(TenantId tenant, const SandboxId& sandbox,
                                                    int64_t first) {
  ATOLL_TRY(Query query, database_.query("SELECT " RUN_COLUMNS " FROM context_runs "
                                         "WHERE tenant_id = ? AND sandbox_id = ? "
                                         "AND sequence >= ? ORDER BY sequence, context_id, run",
                                         tenant.number(), sandbox.view(), first));
  return read_runs(std::move(query));
}

Result<std::vector<RunRow>> ContextRows::all_open(const SandboxId& sandbox,
                                                  const ContextId& context) {
  ATOLL_TRY(Query query, database_.query("SELECT " RUN_COLUMNS " FROM context_runs "
                                         "WHERE sandbox_id = ? AND context_id = ? "
                                         "AND state <> 'ended' ORDER BY run",
                                         sandbox.view(), context.view()));
  return read_runs(std::move(query));
}

}  // namespace atl::store
