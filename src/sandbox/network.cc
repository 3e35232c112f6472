#include "sandbox/network.h"

#include "egress/policy_json.h"

namespace atl::sandbox {

namespace {

constexpr std::string_view kNoRules = "{}";
constexpr size_t kMaxRanges = 64;  // of one isolate
constexpr size_t kUpstreamBytes = 2048;

}  // namespace

Result<std::string> network_text(const egress::Policy& policy) {
  if (policy.open_ranges().size() > kMaxRanges)
    return Error(Code::kInvalid, "network allows more than 64 ranges of addresses")
        .with_reason("invalid_network_rule")
        .with_field("network");
  if (policy == egress::Policy()) return std::string(kNoRules);
  egress::Policy drawn = policy;
  for (egress::SecretUse& use : drawn.secrets)
    if (use.placeholder.empty()) use.placeholder = egress::draw_placeholder();
  std::string text = egress::policy_text(drawn);
  // The proxy of the tenant may come to it.
  if (text.size() > egress::kMaxPolicyBytes - kUpstreamBytes)
    return Error(Code::kInvalid, "network has too many rules")
        .with_reason("invalid_network_rule")
        .with_field("network");
  return text;
}

std::string keep_placeholders(const std::string& before, const std::string& after) {
  auto old = egress::parse_policy_json(before);
  auto changed = egress::parse_policy_json(after);
  if (!old || !changed || old->secrets.empty() || changed->secrets.empty()) return after;
  for (egress::SecretUse& use : changed->secrets)
    for (const egress::SecretUse& known : old->secrets)
      if (known.name == use.name) use.placeholder = known.placeholder;
  return egress::policy_text(*changed);
}

Result<std::string> template_network(const store::TemplateManifest& manifest) {
  egress::Policy policy;
  for (const std::string& text : manifest.network_allow) {
    ATOLL_TRY(egress::Rule rule, egress::parse_short_rule(text));
    policy.rules.push_back(std::move(rule));
  }
  if (!manifest.upstream_proxy.empty()) {
    ATOLL_TRY(policy.upstream,
              egress::make_upstream_use(manifest.upstream_proxy, manifest.upstream_credentials));
  }
  return network_text(policy);
}

Result<std::string> full_network(const Services& services, const store::SandboxRow& row) {
  // Through which proxy nothing may leave is no matter.
  if (row.network == kNoRules || !services.tenant_network) return row.network;
  std::string shared = services.tenant_network(row.tenant);
  if (shared == kNoRules) return row.network;
  ATOLL_TRY(egress::Policy of_all, egress::parse_policy_json(shared));
  ATOLL_TRY(egress::Policy policy, egress::parse_policy_json(row.network));
  if (!policy.upstream) policy.upstream = std::move(of_all.upstream);
  return egress::policy_text(policy);
}

Task<Result<void>> apply_network(Services& services, store::SandboxRow row) {
  auto tenant = static_cast<uint64_t>(row.tenant.number());
  ATOLL_CO_TRY(std::string network, full_network(services, row));
  auto set = co_await services.driver.set_network(row.id, tenant, std::move(network));
  co_return set;
}

}  // namespace atl::sandbox
