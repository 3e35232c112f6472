#include "sandbox/tenants.h"

#include "egress/policy_json.h"
#include "sandbox/network.h"
#include "sandbox/secrets.h"

namespace atl::sandbox {

namespace {

Result<store::TenantRow> find_tenant(store::Catalog& catalog, const std::string& name) {
  ATOLL_TRY(auto found, catalog.tenants().find_by_name(name));
  if (!found)
    return Error(Code::kNotFound, "there is no tenant " + name).with_reason("tenant_not_found");
  return std::move(*found);
}

// As it is stored, and as egress is told.
std::string shared_network(const TenantUpstream& upstream) {
  egress::Policy network;
  network.upstream = upstream;
  return upstream ? egress::policy_text(network) : "{}";
}

}  // namespace

Tenants::Tenants(Sandboxes& sandboxes, store::TenantSettings settings, Known known)
    : sandboxes_(sandboxes),
      settings_(std::make_shared<store::TenantSettings>(std::move(settings))),
      known_(std::move(known)) {
  sandboxes_.services().tenant_network = [this](store::TenantId tenant) {
    return shared_network(upstream(tenant));
  };
  sandboxes_.services().sealed_share = [this](store::TenantId tenant) {
    return sealed_bytes(tenant);
  };
}

Result<std::unique_ptr<Tenants>> Tenants::create(Sandboxes& sandboxes,
                                                 store::TenantSettings settings) {
  ATOLL_TRY(auto stored, settings.all());
  Known known;
  for (const auto& [tenant, setting] : stored) {
    ATOLL_TRY(egress::Policy network, egress::parse_policy_json(setting.network));
    known[tenant] = {setting.e2b_internet, network.upstream, setting.sealed_bytes};
  }
  return std::unique_ptr<Tenants>(new Tenants(sandboxes, std::move(settings), std::move(known)));
}

E2bInternet Tenants::e2b_internet(store::TenantId tenant) const {
  auto known = known_.find(tenant);
  return known == known_.end() ? E2bInternet::kDenied : known->second.e2b_internet;
}

TenantUpstream Tenants::upstream(store::TenantId tenant) const {
  auto known = known_.find(tenant);
  return known == known_.end() ? std::nullopt : known->second.upstream;
}

uint64_t Tenants::sealed_bytes(store::TenantId tenant) const {
  auto known = known_.find(tenant);
  return known == known_.end() ? store::kSealedShareBytes : known->second.sealed_bytes;
}

Task<Result<std::vector<NamedTenant>>> Tenants::list() {
  auto work = [](store::Catalog& catalog) { return catalog.tenants().all(); };
  ATOLL_CO_TRY(auto rows, co_await sandboxes_.services().ledger.run(work));
  std::vector<NamedTenant> tenants;
  for (const store::TenantRow& row : rows)
    tenants.push_back({row.name, e2b_internet(row.id), upstream(row.id), sealed_bytes(row.id),
                       row.created_at_ms});
  co_return tenants;
}

Task<Result<NamedTenant>> Tenants::change(ChangeTenant wanted) {
  Services& services = sandboxes_.services();
  auto find = [name = wanted.name](store::Catalog& catalog) { return find_tenant(catalog, name); };
  ATOLL_CO_TRY(store::TenantRow row, co_await services.ledger.run(find));
  Setting after{wanted.e2b_internet.value_or(e2b_internet(row.id)),
                wanted.upstream ? *wanted.upstream : upstream(row.id),
                wanted.sealed_bytes.value_or(sealed_bytes(row.id))};
  std::string text = shared_network(after.upstream);
  Secrets secrets(services.driver, row.id);
  if (wanted.upstream) ATOLL_CO_TRY_VOID(co_await secrets.check(text));
  auto set = [settings = settings_, tenant = row.id,
              stored = store::TenantSetting{after.e2b_internet, text, after.sealed_bytes}](
                 store::Catalog&) { return settings->set(tenant, stored); };
  ATOLL_CO_TRY_VOID(co_await services.ledger.run(set));
  known_[row.id] = after;
  std::vector<std::shared_ptr<Sandbox>> held;
  for (const auto& [id, sandbox] : sandboxes_.all())
    if (sandboxes_.find(row.id, id)) held.push_back(sandbox);
  // All of them, also when one cannot be told: then it is said, and can be asked for again.
  Result<void> all_held;
  for (const auto& sandbox : held) {
    auto done = co_await hold(sandbox);
    bool tells = wanted.upstream && !sandbox->row().released;
    if (done && tells) done = co_await apply_network(services, sandbox->row());
    bool is_gone = sandboxes_.find(row.id, sandbox->id()) == nullptr;
    if (!done && !is_gone) all_held = std::move(done).error();
  }
  if (!all_held) co_return std::move(all_held).error();
  co_return NamedTenant{row.name, after.e2b_internet, after.upstream, after.sealed_bytes,
                        row.created_at_ms};
}

Task<Result<void>> Tenants::hold_ceiling(std::shared_ptr<Sandbox> sandbox) {
  auto done = co_await hold(sandbox);
  bool is_gone = sandboxes_.find(sandbox->row().tenant, sandbox->id()) == nullptr;
  if (done || is_gone) co_return Result<void>();
  co_return done;
}

Task<Result<void>> Tenants::hold(std::shared_ptr<Sandbox> sandbox) {
  if (e2b_internet(sandbox->row().tenant) == E2bInternet::kAllowed) co_return Result<void>();
  ATOLL_CO_TRY(egress::Policy policy, egress::parse_policy_json(sandbox->row().network));
  if (!policy.public_names) co_return Result<void>();
  policy.public_names = false;
  ATOLL_CO_TRY(std::string network, network_text(policy));
  ChangeSandbox change{.network = std::move(network)};
  co_return co_await sandboxes_.change(sandbox, std::move(change));
}

}  // namespace atl::sandbox
