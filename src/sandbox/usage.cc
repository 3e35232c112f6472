#include "sandbox/usage.h"

namespace atl::sandbox {

Task<Result<store::Usage>> tenant_usage(Ledger& ledger, store::TenantId tenant) {
  auto read = [tenant](store::Catalog& catalog) { return catalog.usage().of_tenant(tenant); };
  co_return co_await ledger.run(read);
}

Task<Result<store::Usage>> sandbox_usage(Ledger& ledger, store::TenantId tenant,
                                         SandboxId sandbox) {
  auto read = [tenant, sandbox](store::Catalog& catalog) {
    return catalog.usage().of_sandbox(tenant, sandbox);
  };
  co_return co_await ledger.run(read);
}

}  // namespace atl::sandbox
