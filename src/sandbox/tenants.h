// Tenants: what the operator of this host has set for each. Settings are held in memory and changed
// only here, so that what is remembered stays true; the rows are written by the ledger's thread.
//
// One thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "egress/policy.h"
#include "sandbox/sandboxes.h"
#include "store/tenant_settings.h"

namespace atl::sandbox {

using store::E2bInternet;

// What all connections of a tenant's sandboxes are dialled through whose policy names no other.
using TenantUpstream = std::optional<egress::UpstreamUse>;

struct NamedTenant {
  std::string name;
  E2bInternet e2b_internet = E2bInternet::kDenied;
  TenantUpstream upstream;
  uint64_t sealed_bytes = store::kSealedShareBytes;
  int64_t created_at_ms = 0;
};

struct ChangeTenant {
  std::string name;
  std::optional<E2bInternet> e2b_internet = {};
  std::optional<TenantUpstream> upstream = {};
  std::optional<uint64_t> sealed_bytes = {};  // of what is sealed from then on
};

class Tenants {
 public:
  static Result<std::unique_ptr<Tenants>> create(Sandboxes& sandboxes,
                                                 store::TenantSettings settings);

  E2bInternet e2b_internet(store::TenantId tenant) const;
  TenantUpstream upstream(store::TenantId tenant) const;
  // That its sealed snapshots may have together.
  uint64_t sealed_bytes(store::TenantId tenant) const;
  // Takes from a sandbox what its tenant is not allowed any more.
  Task<Result<void>> hold_ceiling(std::shared_ptr<Sandbox> sandbox);

  // For the operator. All, oldest first.
  Task<Result<std::vector<NamedTenant>>> list();
  // In force when it returns, also for sandboxes that are there already.
  Task<Result<NamedTenant>> change(ChangeTenant wanted);

 private:
  struct Setting {
    E2bInternet e2b_internet = E2bInternet::kDenied;
    TenantUpstream upstream;
    uint64_t sealed_bytes = store::kSealedShareBytes;
  };
  using Known = std::map<store::TenantId, Setting>;
  Tenants(Sandboxes& sandboxes, store::TenantSettings settings, Known known);
  Task<Result<void>> hold(std::shared_ptr<Sandbox> sandbox);

  Sandboxes& sandboxes_;
  // Shared with work of the ledger, which may be done after its asker has gone.
  std::shared_ptr<store::TenantSettings> settings_;
  Known known_;
};

}  // namespace atl::sandbox
