#include "store/usage_rows.h"

namespace atl::store {

namespace {

Result<Usage> read_one(Query query) {
  ATOLL_TRY(bool found, query.next());
  if (!found) return Usage{};
  Usage usage{.since_ms = query.int64(),
              .sandboxes = query.uint64(),
              .execs = query.uint64(),
              .cpu_us = query.uint64(),
              .wall_us = query.uint64(),
              .output_bytes = query.uint64(),
              .read_bytes = query.uint64(),
              .written_bytes = query.uint64()};
  ATOLL_TRY_VOID(query.row_done());
  return usage;
}

}  // namespace

Result<Usage> UsageRows::of_tenant(TenantId tenant) {
  ATOLL_TRY(Query query,
            database_.query("SELECT since_ms, sandboxes, execs, cpu_us, wall_us, output_bytes, "
                            "read_bytes, written_bytes FROM usage_totals WHERE tenant_id = ?",
                            tenant.number()));
  return read_one(std::move(query));
}

// total() and not sum(): figures are an agent's, and a sum that overflows is an error.
Result<Usage> UsageRows::of_sandbox(TenantId tenant, const SandboxId& sandbox) {
  ATOLL_TRY(Query query,
            database_.query("SELECT s.created_at_ms, 1, count(e.exec), "
                            "CAST(total(e.user_us) + total(e.system_us) AS INTEGER), "
                            "CAST(total(e.wall_us) AS INTEGER), "
                            "CAST(total(e.stdout_bytes) + total(e.stderr_bytes) AS INTEGER), "
                            "CAST(total(e.read_bytes) AS INTEGER), "
                            "CAST(total(e.written_bytes) AS INTEGER) "
                            "FROM sandboxes s LEFT JOIN execs e ON e.tenant_id = s.tenant_id "
                            "AND e.sandbox_id = s.sandbox_id AND e.state = 'ended' "
                            "WHERE s.tenant_id = ? AND s.sandbox_id = ? GROUP BY s.sandbox_id",
                            tenant.number(), sandbox.view()));
  return read_one(std::move(query));
}

}  // namespace atl::store
