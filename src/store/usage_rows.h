// What tenants have used. Totals outlive the sandboxes they came from: triggers keep them in the
// transaction that lets a sandbox run or stores the end of an exec. Written with kProcess
// durability, as those are.
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "base/result.h"
#include "store/database.h"
#include "store/tenant.h"

namespace atl::store {

// Of execs that have ended.
struct Usage {
  int64_t since_ms = 0;  // the first thing that counts; 0: nothing yet
  uint64_t sandboxes = 0;
  uint64_t execs = 0;
  uint64_t cpu_us = 0;
  uint64_t wall_us = 0;
  uint64_t output_bytes = 0;
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;
};

class UsageRows {
 public:
  explicit UsageRows(Database& database) : database_(database) {}

  Result<Usage> of_tenant(TenantId tenant);
  // `sandboxes` is 1, or 0 if the tenant has no such sandbox.
  Result<Usage> of_sandbox(TenantId tenant, const SandboxId& sandbox);

 private:
  Database& database_;
};

}  // namespace atl::store
