#include "store/idempotency_rows.h"

namespace atl::store {
namespace {

int64_t expiry_ms(int64_t now_ms) {
  return now_ms - std::chrono::milliseconds(kIdempotencyTime).count();
}

Result<IdempotencyRow> read_row(Query& query) {
  IdempotencyRow row{.request = Digest::from_bytes(query.blob<Digest::kBytes>())};
  std::optional<std::string> sandbox = query.text_or_null();
  std::optional<int64_t> exec = query.int64_or_null();
  std::optional<std::string> context = query.text_or_null();
  std::optional<int64_t> run = query.int64_or_null();
  std::optional<int64_t> status = query.int64_or_null();
  StoredAnswer answer{.location = query.text(), .body = query.text_or_null().value_or("")};
  ATOLL_TRY_VOID(query.row_done());
  if (sandbox) row.made.sandbox = SandboxId::parse(*sandbox);
  if (exec) row.made.exec = ExecId::from_number(static_cast<uint32_t>(*exec));
  if (context) row.made.context = ContextId::parse(*context);
  if (run) row.made.run = static_cast<uint32_t>(*run);
  if (row.made.sandbox.has_value() != sandbox.has_value() ||
      row.made.context.has_value() != context.has_value() ||
      row.made.exec.has_value() != exec.has_value())
    return Error(Code::kCorrupt, "read an idempotency key: malformed id");
  answer.status = static_cast<uint32_t>(status.value_or(0));
  if (status) row.answer = std::move(answer);
  return row;
}

struct Totals {
  uint64_t keys = 0, bytes = 0;
};

Result<Totals> read_totals(Database& database, TenantId tenant) {
  ATOLL_TRY(Query query,
            database.query("SELECT keys, bytes FROM idempotency_totals WHERE tenant_id = ?",
                           tenant.number()));
  ATOLL_TRY(bool found, query.next());
  Totals totals;
  if (!found) return totals;
  totals.keys = query.uint64();
  totals.bytes = query.uint64();
  ATOLL_TRY_VOID(query.row_done());
  return totals;
}

}  // namespace

Result<IdempotencyRow> IdempotencyRows::take(const IdempotencyKey& key, const Digest& request,
                                             int64_t now_ms) {
  ATOLL_TRY(Transaction transaction, Transaction::begin(database_));
  ATOLL_TRY([[maybe_unused]] int64_t forgotten,
            database_.run("DELETE FROM idempotency_keys WHERE tenant_id = ? "
                          "AND idempotency_key = ? AND created_at_ms <= ?",
                          key.tenant.number(), key.text, expiry_ms(now_ms)));
  ATOLL_TRY(int64_t taken,
            database_.run("INSERT INTO idempotency_keys (tenant_id, idempotency_key, request, "
                          "created_at_ms) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                          key.tenant.number(), key.text, Blob(request.bytes()), now_ms));
  ATOLL_TRY(Totals totals, read_totals(database_, key.tenant));
  if (taken == 1 && totals.keys > kMaxIdempotencyKeys)
    return Error(Code::kExhausted, "the tenant has used its full number of idempotency keys")
        .with_reason("too_many_idempotency_keys");
  ATOLL_TRY_VOID(transaction.commit());
  if (taken == 1) return IdempotencyRow{.request = request};
  ATOLL_TRY(Query query,
            database_.query("SELECT request, sandbox_id, exec, context_id, run, status, "
                            "location, body FROM idempotency_keys "
                            "WHERE tenant_id = ? AND idempotency_key = ?",
                            key.tenant.number(), key.text));
  ATOLL_TRY(bool found, query.next());
  ATOLL_CHECK(found);
  return read_row(query);
}

Result<void> IdempotencyRows::insert_sandbox(const IdempotencyKey& key, const SandboxRow& row) {
  ATOLL_TRY(Transaction transaction, Transaction::begin(database_));
  ATOLL_TRY_VOID(SandboxRows(database_).insert(row));
  ATOLL_TRY_VOID(set_made(key, {.sandbox = row.id}));
  return transaction.commit();
}

Result<void> IdempotencyRows::insert_exec(const IdempotencyKey& key, const ExecRow& row) {
  ATOLL_TRY(Transaction transaction, Transaction::begin(database_));
  ATOLL_TRY_VOID(ExecRows(database_).insert_within(transaction, row));
  ATOLL_TRY_VOID(set_made(key, {.sandbox = row.sandbox, .exec = row.id}));
  return transaction.commit();
}

Result<void> IdempotencyRows::insert_context(const IdempotencyKey& key, const ContextRow& row) {
  ATOLL_TRY(Transaction transaction, Transaction::begin(database_));
  ATOLL_TRY_VOID(ContextRows(database_).insert(row));
  ATOLL_TRY_VOID(set_made(key, {.sandbox = row.sandbox, .context = row.id}));
  return transaction.commit();
}

Result<void> IdempotencyRows::insert_run(const IdempotencyKey& key, const RunRow& row) {
  ATOLL_TRY(Transaction transaction, Transaction::begin(database_));
  ATOLL_TRY_VOID(ContextRows(database_).insert_run_within(transaction, row));
  ATOLL_TRY_VOID(
      set_made(key, {.sandbox = row.sandbox, .context = row.context, .run = row.number}));
  return transaction.commit();
}

Result<void> IdempotencyRows::set_made(const IdempotencyKey& key, const Made& made) {
  std::optional<std::string_view> sandbox;
  if (made.sandbox) sandbox = made.sandbox->view();
  std::optional<uint32_t> exec;
  if (made.exec) exec = made.exec->number();
  std::optional<std::string_view> context;
  if (made.context) context = made.context->view();
  ATOLL_TRY(int64_t changed,
            database_.run("UPDATE idempotency_keys SET sandbox_id = ?, exec = ?, context_id = ?, "
                          "run = ? WHERE tenant_id = ? AND idempotency_key = ?",
                          sandbox, exec, context, made.run, key.tenant.number(), key.text));
  if (changed == 0) return Error(Code::kNotFound, "the idempotency key was forgotten");
  return {};
}

Result<void> IdempotencyRows::set_answer(const IdempotencyKey& key, const StoredAnswer& answer) {
  if (answer.body.size() > kMaxAnswerBytes) return {};
  ATOLL_TRY(Totals totals, read_totals(database_, key.tenant));
  if (totals.bytes + answer.body.size() > kMaxAnswerBytesTogether) return {};
  ATOLL_TRY(
      [[maybe_unused]] int64_t changed,
      database_.run("UPDATE idempotency_keys SET status = ?, location = ?, body = ? "
                    "WHERE tenant_id = ? AND idempotency_key = ?",
                    answer.status, answer.location, answer.body, key.tenant.number(), key.text));
  return {};
}

Result<void> IdempotencyRows::release(const IdempotencyKey& key) {
  ATOLL_TRY([[maybe_unused]] int64_t changed,
            database_.run("DELETE FROM idempotency_keys WHERE tenant_id = ? "
                          "AND idempotency_key = ? AND sandbox_id IS NULL AND status IS NULL",
                          key.tenant.number(), key.text));
  return {};
}

Result<int64_t> IdempotencyRows::forget_expired(int64_t now_ms) {
  return database_.run(
      "DELETE FROM idempotency_keys WHERE (tenant_id, idempotency_key) IN "
      "(SELECT tenant_id, idempotency_key FROM idempotency_keys WHERE created_at_ms <= ? "
      "ORDER BY created_at_ms LIMIT ?)",
      expiry_ms(now_ms), kMaxForgotten);
}

}  // namespace atl::store
