// Table execs: one process run each, numbered from 1 in its sandbox. Written with kProcess
// durability.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "store/database.h"
#include "store/tenant.h"

namespace atl::store {

struct ExecRow {
  SandboxId sandbox;
  TenantId tenant;
  ExecId id;
  std::string state = "running";  // "running" | "ended"
  std::string request = {};       // JSON: cmd, env, cwd, …
  int64_t created_at_ms = 0;
  int64_t sequence = 0;  // its place among all execs, runs and snapshots
  uint32_t pid = 0;      // 0: not started yet
  // What follows is known when it has ended.
  std::string verdict = {};
  std::optional<int> exit_code = {};
  std::optional<int> signal = {};
  uint64_t stdout_bytes = 0, stderr_bytes = 0;
  uint64_t stdout_cut = 0, stderr_cut = 0;
  uint64_t start_us = 0, wall_us = 0, drain_us = 0;
  uint64_t user_us = 0, system_us = 0, peak_memory_bytes = 0;
  uint64_t read_bytes = 0, written_bytes = 0;
  std::string peak_memory_scope = "exec";  // "exec" | "sandbox": whose peak it is
  uint32_t limits_hit = 0;                 // bits of agent::LimitBit, which are never renumbered
  std::string failure = {};
  // What it was started with, an agent::Start, to be inserted; empty: it cannot be run again.
  std::string record = {};
};

class ExecRows {
 public:
  explicit ExecRows(Database& database) : database_(database) {}

  // Takes the sandbox's next number and writes the row, in one transaction; a number is never used
  // twice.
  Result<ExecId> insert(TenantId tenant, const SandboxId& sandbox, std::string_view request,
                        int64_t created_at_ms);
  // The same with a number that the caller has chosen: the sandbox's next or a higher one.
  Result<void> insert(const ExecRow& row);
  // The same, as part of a transaction of the caller's.
  Result<void> insert_within(const Transaction& transaction, const ExecRow& row);
  // kNotFound: no such exec. kConflict: it has ended.
  Result<void> set_started(TenantId tenant, const SandboxId& sandbox, ExecId id, uint32_t pid);
  // Writes the ending of `row`, and its pid if known. kConflict: it had ended before, and the first
  // verdict stays; an agent repeats exits until they are acknowledged.
  Result<void> finish(const ExecRow& row);
  Result<std::optional<ExecRow>> find(TenantId tenant, const SandboxId& sandbox, ExecId id);
  // Its record, which no other call reads. Nothing also for one without.
  Result<std::optional<std::string>> find_record(TenantId tenant, const SandboxId& sandbox,
                                                 ExecId id);
  // In the order of their numbers; at most `limit` and at most kMaxPageRows.
  Result<std::vector<ExecRow>> list(TenantId tenant, const SandboxId& sandbox,
                                    std::optional<ExecId> after, size_t limit);

  // At start-up, whoever the tenant is.
  Result<std::vector<ExecRow>> all_running(const SandboxId& sandbox);

 private:
  Result<void> explain_unchanged(TenantId tenant, const SandboxId& sandbox, ExecId id);
  Database& database_;
};

}  // namespace atl::store
