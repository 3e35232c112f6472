#include "egress/inspector.h"

#include "egress/secret_swap.h"

namespace atl::egress {

Decision Inspector::decide(const Destination& to, uint16_t port) const {
  using Carries = EffectivePolicy::Carries;
  return source_.policy.decide(to, port,
                               has_secret_for(to) ? Carries::kSecret : Carries::kNoSecret);
}

bool Inspector::has_secret_for(const Destination& to) const {
  const auto* name = std::get_if<HostName>(&to);
  if (name == nullptr) return false;
  for (const SecretUse& use : source_.policy.policy().secrets) {
    const Secret* secret = source_.secrets->find(source_.tenant, use.name);
    if (secret != nullptr && secret->is_for(*name)) return true;
  }
  return false;
}

Result<std::string> Inspector::swap_secrets(std::string_view head, const Destination& to,
                                            std::string_view path, Transport transport) const {
  std::vector<HeldSecret> held;
  for (const SecretUse& use : source_.policy.policy().secrets)
    if (!use.placeholder.empty())
      held.push_back({use.placeholder, source_.secrets->find(source_.tenant, use.name)});
  SwapPlace place{std::get_if<HostName>(&to), path, transport == Transport::kTls};
  return egress::swap_secrets(head, place, held);
}

Result<std::shared_ptr<CertificateAuthority::Context>> Inspector::server_for(const HostName& name) {
  if (!authority_) {
    ATOLL_TRY(authority_, CertificateAuthority::open(source_.directory, source_.id));
  }
  return authority_->server_for(name);
}

}  // namespace atl::egress
