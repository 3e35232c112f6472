// Tables contexts and context_runs: interpreters that keep state, and what was run in each,
// numbered from 1. Written with kProcess durability.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "store/database.h"
#include "store/tenant.h"

namespace atl::store {

struct ContextRow {
  SandboxId sandbox;
  TenantId tenant;
  ContextId id;
  std::string language = {};
  std::string directory = {};    // empty: the user's home
  std::string environment = {};  // variables, each ended by a zero byte
  std::string description = {};  // JSON: the request of its execs
  uint32_t exec = 0;             // the number of its interpreter; 0: none runs
  uint32_t next_run = 1;
  int64_t created_at_ms = 0;
};

// Offsets are those of the exec's streams.
struct RunRow {
  SandboxId sandbox;
  TenantId tenant;
  ContextId context;
  uint32_t number = 0;
  std::string state = "queued";  // "queued" | "running" | "ended"
  std::string code = {};
  std::string environment = {};  // for this run alone
  uint32_t timeout_ms = 0;
  int64_t created_at_ms = 0;
  int64_t sequence = 0;  // its place among all execs, runs and snapshots
  // What follows is known when it runs.
  int64_t started_at_ms = 0;
  uint64_t frozen_ms = 0;  // since then, and not counted
  uint32_t exec = 0;
  uint64_t input_offset = 0;
  uint64_t stdout_begin = 0, stderr_begin = 0, speech_begin = 0, marks_begin = 0;
  // And this when it has ended.
  uint64_t stdout_end = 0, stderr_end = 0, speech_end = 0;
  uint64_t wall_us = 0;
  std::string verdict = {};
  std::optional<int> exit_code = {};
  std::optional<int> signal = {};
  uint32_t limits_hit = 0;
  bool state_lost = false;
  std::string failure = {};
};

class ContextRows {
 public:
  explicit ContextRows(Database& database) : database_(database) {}

  Result<void> insert(const ContextRow& row);
  // kNotFound: no such context.
  Result<void> set_exec(const ContextRow& row, uint32_t exec);
  // With its runs. Success also if there is none.
  Result<void> remove(const ContextRow& row);

  // Takes its number from the context, which must be the next or a higher one.
  Result<void> insert_run(const RunRow& row);
  Result<void> insert_run_within(const Transaction& transaction, const RunRow& row);
  // Writes what a run has become, as long as it has not ended.
  Result<void> update_run(const RunRow& row);
  Result<std::optional<RunRow>> find_run(TenantId tenant, const SandboxId& sandbox,
                                         const ContextId& context, uint32_t number);

  // Of all contexts of the sandbox that are there, from that number of the sequence on.
  Result<std::vector<RunRow>> runs_since(TenantId tenant, const SandboxId& sandbox, int64_t first);

  // At start-up, whoever the tenant is: in the order of their creation, and of their numbers.
  Result<std::vector<ContextRow>> all(const SandboxId& sandbox);
  Result<std::vector<RunRow>> all_open(const SandboxId& sandbox, const ContextId& context);

 private:
  Database& database_;
};

}  // namespace atl::store
