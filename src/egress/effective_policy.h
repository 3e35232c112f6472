// EffectivePolicy: what one sandbox may reach: its own policy, beneath the ceiling of the host.
#pragma once

#include "egress/policy.h"

namespace atl::egress {

class EffectivePolicy {
 public:
  // `ceiling` is borrowed for good; null: none.
  EffectivePolicy(Policy policy, const Policy* ceiling)
      : policy_(std::move(policy)), ceiling_(ceiling) {}

  const Policy& policy() const { return policy_; }
  void set_policy(Policy policy) { policy_ = std::move(policy); }

  // A connection that may carry a secret is inspected, whatever its rule says.
  enum class Carries : unsigned char { kNoSecret, kSecret };
  Decision decide(const Destination& to, uint16_t port, Carries carries) const;
  // A request on a connection that is inspected.
  Decision decide_request(const HostName& name, uint16_t port, std::string_view method,
                          std::string_view path) const;
  Decision decide_name(const HostName& name) const;
  // Whether an address may be dialled for a name.
  bool may_dial(const Address& address, uint16_t port) const;
  // Whether the policy's own proxy may be dialled, as far as its name goes.
  bool may_use(const UpstreamUse& upstream) const;
  // Whether what is not allowed is to be answered all the same, so that it is recorded.
  bool learns_of(const Decision& decision) const;

 private:
  Policy policy_;
  const Policy* ceiling_;
};

}  // namespace atl::egress
