#include "sandbox/tenants.h"

#include "egress/policy_json.h"
#include "sandbox/network.h"

namespace atl::sandbox {

namespace {

Result<store::TenantRow> set_tenant(store::Catalog& catalog, store::TenantSettings& settings,
                                    const std::string& name, E2bInternet internet) {
  ATOLL_TRY(auto found, catalog.tenants().find_by_name(name));
  if (!found)
    return Error(Code::kNotFound, "there is no tenant " + name).with_reason("tenant_not_found");
  ATOLL_TRY_VOID(settings.set_e2b_internet(found->id, internet));
  return std::move(*found);
}

}  // namespace

Tenants::Tenants(Sandboxes& sandboxes, store::TenantSettings settings, Known known)
    : sandboxes_(sandboxes),
      settings_(std::make_shared<store::TenantSettings>(std::move(settings))),
      known_(std::move(known)) {}

Result<std::unique_ptr<Tenants>> Tenants::create(Sandboxes& sandboxes,
                                                 store::TenantSettings settings) {
  ATOLL_TRY(Known known, settings.e2b_internet());
  return std::unique_ptr<Tenants>(new Tenants(sandboxes, std::move(settings), std::move(known)));
}

E2bInternet Tenants::e2b_internet(store::TenantId tenant) const {
  auto known = known_.find(tenant);
  return known == known_.end() ? E2bInternet::kDenied : known->second;
}

Task<Result<std::vector<NamedTenant>>> Tenants::list() {
  auto work = [](store::Catalog& catalog) { return catalog.tenants().all(); };
  ATOLL_CO_TRY(auto rows, co_await sandboxes_.services().ledger.run(work));
  std::vector<NamedTenant> tenants;
  for (const store::TenantRow& row : rows)
    tenants.push_back({row.name, e2b_internet(row.id), row.created_at_ms});
  co_return tenants;
}

Task<Result<NamedTenant>> Tenants::set(std::string name, E2bInternet internet) {
  auto work = [settings = settings_, name, internet](store::Catalog& catalog) {
    return set_tenant(catalog, *settings, name, internet);
  };
  ATOLL_CO_TRY(store::TenantRow row, co_await sandboxes_.services().ledger.run(work));
  known_[row.id] = internet;
  std::vector<std::shared_ptr<Sandbox>> held;
  for (const auto& [id, sandbox] : sandboxes_.all())
    if (sandboxes_.find(row.id, id)) held.push_back(sandbox);
  // All of them, also when one cannot be told: then it is said, and can be asked for again.
  Result<void> all_held;
  for (const auto& sandbox : held) {
    auto done = co_await hold_ceiling(sandbox);
    if (!done) all_held = std::move(done).error();
  }
  if (!all_held) co_return std::move(all_held).error();
  co_return NamedTenant{row.name, internet, row.created_at_ms};
}

Task<Result<void>> Tenants::hold_ceiling(std::shared_ptr<Sandbox> sandbox) {
  store::TenantId tenant = sandbox->row().tenant;
  if (e2b_internet(tenant) == E2bInternet::kAllowed) co_return Result<void>();
  ATOLL_CO_TRY(egress::Policy policy, egress::parse_policy_json(sandbox->row().network));
  if (!policy.public_names) co_return Result<void>();
  policy.public_names = false;
  ATOLL_CO_TRY(std::string network, network_text(policy));
  ChangeSandbox change{.network = std::move(network)};
  auto changed = co_await sandboxes_.change(sandbox, std::move(change));
  bool is_gone = sandboxes_.find(tenant, sandbox->id()) == nullptr;
  if (changed || is_gone) co_return Result<void>();
  co_return std::move(changed).error();
}

}  // namespace atl::sandbox
