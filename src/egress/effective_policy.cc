#include "egress/effective_policy.h"

namespace atl::egress {

Decision EffectivePolicy::decide(const Destination& to, uint16_t port, Carries carries) const {
  Decision decision = policy_.decide(to, port);
  if (!decision.allowed()) return decision;
  bool can_inspect = decision.protocol != Protocol::kTcp && std::holds_alternative<HostName>(to);
  if (can_inspect && carries == Carries::kSecret) decision.is_inspected = true;
  const auto* address = std::get_if<Address>(&to);
  // What listens on this host for itself alone is its owner's to give.
  bool is_host = address != nullptr && address->classify() == AddressClass::kLoopback;
  Decision refused{.rule = decision.rule, .reason = "above_ceiling"};
  if (ceiling_ == nullptr) return is_host ? refused : decision;
  Decision most = ceiling_->decide(to, port);
  // A ceiling about requests cannot be held where they are not looked at.
  bool is_beneath = most.allowed() && (decision.is_inspected || !most.is_inspected);
  return is_beneath ? decision : refused;
}

Decision EffectivePolicy::decide_request(const HostName& name, uint16_t port,
                                         std::string_view method, std::string_view path) const {
  Decision decision = policy_.decide_request(name, port, method, path);
  if (!decision.allowed() || ceiling_ == nullptr) return decision;
  if (ceiling_->decide_request(name, port, method, path).allowed()) return decision;
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

bool EffectivePolicy::may_use(const UpstreamUse& upstream) const {
  return ceiling_ == nullptr || ceiling_->decide(upstream.proxy, upstream.port).allowed();
}

bool EffectivePolicy::learns_of(const Decision& decision) const {
  bool unknown = decision.reason == "no_rule" || decision.reason == "port_not_allowed";
  return policy_.mode == Mode::kLearn && !decision.allowed() && unknown;
}

}  // namespace atl::egress
