#include "egress/effective_policy.h"

namespace atl::egress {

Decision EffectivePolicy::decide(const Destination& to, uint16_t port) const {
  Decision decision = policy_.decide(to, port);
  if (!decision.allowed()) return decision;
  const auto* address = std::get_if<Address>(&to);
  // What listens on this host for itself alone is its owner's to give.
  bool is_host = address != nullptr && address->classify() == AddressClass::kLoopback;
  bool is_beneath = ceiling_ == nullptr ? !is_host : ceiling_->decide(to, port).allowed();
  if (is_beneath) return decision;
  return {.rule = decision.rule, .reason = "above_ceiling"};
}

Decision EffectivePolicy::decide_name(const HostName& name) const {
  Decision decision = policy_.decide_name(name);
  if (!decision.allowed() || ceiling_ == nullptr) return decision;
  if (ceiling_->decide_name(name).allowed()) return decision;
  return {.rule = decision.rule, .reason = "above_ceiling"};
}

bool EffectivePolicy::may_dial(const Address& address, uint16_t port) const {
  if (!policy_.may_dial(address, port)) return false;
  if (ceiling_ == nullptr) return address.classify() != AddressClass::kLoopback;
  return ceiling_->may_dial(address, port);
}

bool EffectivePolicy::learns_of(const Decision& decision) const {
  bool unknown = decision.reason == "no_rule" || decision.reason == "port_not_allowed";
  return policy_.mode == Mode::kLearn && !decision.allowed() && unknown;
}

}  // namespace atl::egress
