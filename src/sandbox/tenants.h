// Tenants: what the operator of this host has set for each. Settings are held in memory and changed
// only here, so that what is remembered stays true; the rows are written by the ledger's thread.
//
// One thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sandbox/sandboxes.h"
#include "store/tenant_settings.h"

namespace atl::sandbox {

using store::E2bInternet;

struct NamedTenant {
  std::string name;
  E2bInternet e2b_internet = E2bInternet::kDenied;
  int64_t created_at_ms = 0;
};

class Tenants {
 public:
  static Result<std::unique_ptr<Tenants>> create(Sandboxes& sandboxes,
                                                 store::TenantSettings settings);

  E2bInternet e2b_internet(store::TenantId tenant) const;
  // Takes from a sandbox what its tenant is not allowed any more.
  Task<Result<void>> hold_ceiling(std::shared_ptr<Sandbox> sandbox);

  // For the operator. All, oldest first.
  Task<Result<std::vector<NamedTenant>>> list();
  // In force when it returns, also for sandboxes that have it already.
  Task<Result<NamedTenant>> set(std::string name, E2bInternet internet);

 private:
  using Known = std::map<store::TenantId, E2bInternet>;
  Tenants(Sandboxes& sandboxes, store::TenantSettings settings, Known known);

  Sandboxes& sandboxes_;
  // Shared with work of the ledger, which may be done after its asker has gone.
  std::shared_ptr<store::TenantSettings> settings_;
  Known known_;
};

}  // namespace atl::sandbox
