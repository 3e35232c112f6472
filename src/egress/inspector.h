// Inspector: what a gate knows beyond names and ports. Decides whose requests are looked at,
// answers in the place of servers whose TLS is ended here, and puts secrets where they belong.
//
// One thread; part of a gate.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "egress/certificate_authority.h"
#include "egress/effective_policy.h"
#include "egress/secret_store.h"
#include "egress/upstream.h"

namespace atl::egress {

class Inspector {
 public:
  // What the gate owns and may change.
  struct Source {
    const EffectivePolicy& policy;
    const uint64_t& tenant;
    const SecretStore* secrets;
    int directory;
    SandboxId id;
  };
  explicit Inspector(const Source& source) : source_(source) {}

  // A connection, before its name is resolved.
  Decision decide(const Destination& to, uint16_t port) const;

  // Whether some request of the sandbox goes on as another than it came, and whether those to this
  // host may: such connections are inspected though their rule does not say so.
  bool rewrites() const;
  bool rewrites(const Destination& to) const;
  // The head of a request as it goes on: with secrets for their placeholders, and with the fields
  // that the policy sets. kDenied with reason secret_not_bound.
  enum class Transport : unsigned char { kPlain, kTls };
  Result<std::string> rewrite(std::string_view head, const Destination& to, std::string_view path,
                              Transport transport) const;

  // The proxy that the policy names, with what it is shown. kDenied with reason above_ceiling,
  // address_refused, or upstream_failed: its secret is gone, or not bound to it.
  Result<std::optional<Upstream>> upstream() const;

  // A server that the sandbox takes for `name`.
  Result<std::shared_ptr<CertificateAuthority::Context>> server_for(const HostName& name);

 private:
  Source source_;
  std::optional<CertificateAuthority> authority_;  // made when it is first needed
};

}  // namespace atl::egress
