#include "egress/inspector.h"

#include <algorithm>

#include "egress/header_write.h"
#include "egress/secret_swap.h"

namespace atl::egress {

Decision Inspector::decide(const Destination& to, uint16_t port) const {
  using Carries = EffectivePolicy::Carries;
  return source_.policy.decide(to, port, rewrites(to) ? Carries::kSecret : Carries::kNoSecret);
}

bool Inspector::rewrites() const {
  const Policy& policy = source_.policy.policy();
  return !policy.secrets.empty() || !policy.set_headers.empty();
}

bool Inspector::rewrites(const Destination& to) const {
  const auto* name = std::get_if<HostName>(&to);
  if (name == nullptr) return false;
  const auto& settings = source_.policy.policy().set_headers;
  auto is_for = [&](const HeaderSetting& setting) { return setting.is_for(*name); };
  if (std::any_of(settings.begin(), settings.end(), is_for)) return true;
  for (const SecretUse& use : source_.policy.policy().secrets) {
    const Secret* secret = source_.secrets->find(source_.tenant, use.name);
    if (secret != nullptr && secret->is_for(*name)) return true;
  }
  return false;
}

Result<std::string> Inspector::rewrite(std::string_view head, const Destination& to,
                                       std::string_view path, Transport transport) const {
  std::vector<HeldSecret> held;
  for (const SecretUse& use : source_.policy.policy().secrets)
    if (!use.placeholder.empty())
      held.push_back({use.placeholder, source_.secrets->find(source_.tenant, use.name)});
  SwapPlace place{std::get_if<HostName>(&to), path, transport == Transport::kTls};
  ATOLL_TRY(std::string swapped, swap_secrets(head, place, held));
  auto find = [this](const std::string& name) {
    return source_.secrets->find(source_.tenant, name);
  };
  return write_headers(swapped, place, source_.policy.policy().set_headers, find);
}

Result<std::optional<Upstream>> Inspector::upstream() const {
  const auto& use = source_.policy.policy().upstream;
  if (!use) return std::optional<Upstream>();
  if (!source_.policy.may_use(*use))
    return Error(Code::kDenied, "the policy's proxy").with_reason("above_ceiling");
  const auto* address = std::get_if<Address>(&use->proxy);
  if (address != nullptr && !source_.policy.may_dial(*address, use->port))
    return Error(Code::kDenied, "the policy's proxy").with_reason("address_refused");
  Upstream upstream{.proxy = use->proxy, .port = use->port};
  if (use->credentials.empty()) return std::optional(std::move(upstream));
  const Secret* secret = source_.secrets->find(source_.tenant, use->credentials);
  const auto* name = std::get_if<HostName>(&use->proxy);
  if (secret == nullptr || name == nullptr || !secret->is_for(*name))
    return Error(Code::kDenied, "the secret of the policy's proxy").with_reason("upstream_failed");
  upstream.authorization = basic_authorization(secret->value);
  return std::optional(std::move(upstream));
}

Result<std::shared_ptr<CertificateAuthority::Context>> Inspector::server_for(const HostName& name) {
  if (!authority_) {
    ATOLL_TRY(authority_, CertificateAuthority::open(source_.directory, source_.id));
  }
  return authority_->server_for(name);
}

}  // namespace atl::egress
