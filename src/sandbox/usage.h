// What was used, from the rows: by a tenant, also in sandboxes that are gone, and in one sandbox.
#pragma once

#include "sandbox/ledger.h"

namespace atl::sandbox {

Task<Result<store::Usage>> tenant_usage(Ledger& ledger, store::TenantId tenant);
Task<Result<store::Usage>> sandbox_usage(Ledger& ledger, store::TenantId tenant, SandboxId sandbox);

}  // namespace atl::sandbox
