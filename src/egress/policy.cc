#include "egress/policy.h"

#include <algorithm>
#include <charconv>

namespace atl::egress {
namespace {

constexpr const char* kPublicNames = "public_names";

Error invalid(std::string_view text, std::string_view why) {
  return Error(Code::kInvalid, "\"" + std::string(text) + "\" " + std::string(why));
}

Result<uint16_t> parse_port(std::string_view whole, std::string_view text) {
  unsigned port = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0 || port > 65535 ||
      text[0] == '0')
    return invalid(whole, "has a port that is not 1 to 65535");
  return static_cast<uint16_t>(port);
}

Result<Target> parse_wildcard(std::string_view text) {
  auto suffix = HostName::parse(text.substr(2));
  if (!suffix) return invalid(text, "is no name: after *. comes a name of letters and digits");
  // *.com or *.uk would be nearly everything.
  if (suffix->label_count() < 2) return invalid(text, "is too wide: name at least two labels");
  return Target(AnyBeneath{*suffix});
}

bool is_default_ports(const std::vector<uint16_t>& ports) {
  return ports.empty() ||
         std::equal(ports.begin(), ports.end(), std::begin(kDefaultPorts), std::end(kDefaultPorts));
}

std::string addition(const std::string& target, uint16_t port) {
  bool usual = std::find(std::begin(kDefaultPorts), std::end(kDefaultPorts), port) !=
               std::end(kDefaultPorts);
  bool has_colon = target.find(':') != target.npos;
  std::string text = has_colon && !usual ? "[" + target + "]" : target;
  if (!usual) text += ":" + std::to_string(port);
  return "add \"" + text + "\" to allow";
}

template <typename Destination>
Explanation explain_any(const Policy& policy, const Destination& destination,
                        const std::string& text, uint16_t port) {
  Explanation explanation{policy.decide(destination, port), ""};
  const Decision& decision = explanation.decision;
  if (decision.allowed()) return explanation;
  if (decision.reason == "denied_by_rule")
    explanation.change = "remove " + decision.rule + ", which denies it";
  else if (decision.reason == "port_not_allowed")
    explanation.change = "add port " + std::to_string(port) + " to " + decision.rule;
  else
    explanation.change = addition(text, port);
  return explanation;
}

}  // namespace

std::string_view protocol_name(Protocol protocol) {
  static constexpr std::string_view kNames[] = {"auto", "tls", "http", "tcp"};
  return kNames[static_cast<size_t>(protocol)];
}

bool Rule::names(const HostName& name) const {
  if (const auto* exact = std::get_if<HostName>(&target)) return *exact == name;
  if (const auto* beneath = std::get_if<AnyBeneath>(&target))
    return name.is_beneath(beneath->suffix);
  return false;
}

bool Rule::names(const Address& address) const {
  const auto* range = std::get_if<Cidr>(&target);
  if (range == nullptr || !range->contains(address)) return false;
  if (action == Action::kDeny) return true;
  auto special = address.special_range();
  return !special || special->contains(*range);
}

bool Rule::has_port(uint16_t port) const {
  if (!ports.empty()) return std::find(ports.begin(), ports.end(), port) != ports.end();
  if (action == Action::kDeny) return true;
  return std::find(std::begin(kDefaultPorts), std::end(kDefaultPorts), port) !=
         std::end(kDefaultPorts);
}

std::string Rule::target_text() const {
  if (const auto* exact = std::get_if<HostName>(&target)) return exact->string();
  if (const auto* beneath = std::get_if<AnyBeneath>(&target))
    return "*." + beneath->suffix.string();
  return std::get<Cidr>(target).string();
}

Result<Target> parse_target(std::string_view text) {
  if (text.starts_with("*.")) return parse_wildcard(text);
  if (auto range = Cidr::parse(text)) {
    auto special = range->first().special_range();
    AddressClass found = range->first().classify();
    if (special && special->contains(*range) && is_never_dialled(found))
      return invalid(text, "is never dialled: " + std::string(class_name(found)));
    return Target(*range);
  }
  if (auto name = HostName::parse(text)) return Target(*name);
  if (text.find('/') != text.npos)
    return invalid(text, "is no range of addresses: bits behind the prefix must be zero");
  return invalid(text, "is no name: letters, digits, hyphens and dots; Unicode as xn--");
}

Result<Rule> parse_short_rule(std::string_view text) {
  std::string_view target = text;
  std::vector<uint16_t> ports;
  size_t colon = text.rfind(':');
  if (text.starts_with('[')) {
    size_t end = text.find(']');
    if (end == text.npos) return invalid(text, "has no closing bracket");
    target = text.substr(1, end - 1);
    std::string_view tail = text.substr(end + 1);
    if (!tail.empty() && !tail.starts_with(':')) return invalid(text, "has more after the bracket");
    colon = tail.empty() ? text.npos : end + 1;
  } else if (colon != text.npos && text.find(':') == colon) {
    target = text.substr(0, colon);
  } else {
    colon = text.npos;  // an IPv6 range
  }
  if (colon != text.npos) {
    ATOLL_TRY(uint16_t port, parse_port(text, text.substr(colon + 1)));
    ports.push_back(port);
  }
  ATOLL_TRY(Target parsed, parse_target(target));
  return Rule{.target = parsed, .ports = std::move(ports), .is_short = true};
}

std::string short_rule_text(const Rule& rule) {
  std::string text = rule.target_text();
  if (is_default_ports(rule.ports)) return text;
  if (text.find(':') != text.npos) text = "[" + text + "]";
  return text + ":" + std::to_string(rule.ports.front());
}

std::string Policy::rule_name(size_t index) const {
  auto is_long = [](const Rule& rule) { return !rule.is_short; };
  auto longs = static_cast<size_t>(std::count_if(rules.begin(), rules.end(), is_long));
  if (index < longs) return "rules[" + std::to_string(index) + "]";
  return "allow[" + std::to_string(index - longs) + "]";
}

std::vector<Cidr> Policy::open_ranges() const {
  std::vector<Cidr> ranges;
  for (const Rule& rule : rules) {
    const auto* range = std::get_if<Cidr>(&rule.target);
    if (range == nullptr || rule.action == Action::kDeny) continue;
    auto holds = [&](const Cidr& other) { return other.contains(*range); };
    if (std::any_of(ranges.begin(), ranges.end(), holds)) continue;
    std::erase_if(ranges, [&](const Cidr& other) { return range->contains(other); });
    ranges.push_back(*range);
  }
  return ranges;
}

bool Policy::inspects() const {
  if (!secrets.empty() || !set_headers.empty()) return true;
  return std::any_of(rules.begin(), rules.end(),
                     [](const Rule& rule) { return rule.inspection.has_value(); });
}

template <typename Destination>
Decision Policy::decide_any(const Destination& destination, uint16_t port) const {
  Decision missed{.reason = "no_rule"};
  for (size_t i = 0; i < rules.size(); ++i) {
    const Rule& rule = rules[i];
    if (!rule.names(destination)) continue;
    if (rule.has_port(port))
      return {.action = rule.action,
              .rule = rule_name(i),
              .reason = rule.action == Action::kDeny ? "denied_by_rule" : "",
              .protocol = rule.protocol,
              .index = i,
              .is_inspected = rule.inspection.has_value()};
    if (rule.action == Action::kAllow && missed.rule.empty())
      missed = {.rule = rule_name(i), .reason = "port_not_allowed"};
  }
  return missed;
}

Decision Policy::decide(const HostName& name, uint16_t port) const {
  Decision decision = decide_any(name, port);
  if (decision.allowed() || !public_names || decision.reason == "denied_by_rule") return decision;
  return {.action = Action::kAllow,
          .rule = kPublicNames,
          .protocol = Protocol::kTcp,
          .index = rules.size()};
}

Decision Policy::decide_request(const HostName& name, uint16_t port, std::string_view method,
                                std::string_view path) const {
  auto canonical = canonical_path(path);
  Decision missed{.reason = "no_rule"};
  for (size_t i = 0; i < rules.size(); ++i) {
    const Rule& rule = rules[i];
    if (!rule.names(name) || !rule.has_port(port)) continue;
    if (rule.action == Action::kDeny) {
      if (missed.rule.empty()) missed = {.rule = rule_name(i), .reason = "denied_by_rule"};
      break;
    }
    const RequestRule every;
    const RequestRule& wanted = rule.inspection ? *rule.inspection : every;
    bool has_path = wanted.paths.empty() || (canonical && wanted.has_path(*canonical));
    if (wanted.has_method(method) && has_path)
      return {.action = Action::kAllow, .rule = rule_name(i), .is_inspected = true};
    if (missed.rule.empty())
      missed = {.rule = rule_name(i), .reason = canonical ? "request_not_allowed" : "bad_path"};
  }
  return missed;
}

Decision Policy::decide(const Address& address, uint16_t port) const {
  if (is_never_dialled(address.classify())) return {.reason = "address_refused"};
  return decide_any(address, port);
}

Decision Policy::decide(const Destination& destination, uint16_t port) const {
  return std::visit([&](const auto& one) { return decide(one, port); }, destination);
}

Decision Policy::decide_name(const HostName& name) const {
  for (size_t i = 0; i < rules.size(); ++i) {
    const Rule& rule = rules[i];
    if (!rule.names(name)) continue;
    if (rule.action == Action::kAllow) return {.action = Action::kAllow, .rule = rule_name(i)};
    if (rule.ports.empty()) return {.rule = rule_name(i), .reason = "denied_by_rule"};
  }
  if (public_names) return {.action = Action::kAllow, .rule = kPublicNames};
  return {.reason = "no_rule"};
}

bool Policy::may_dial(const Address& address, uint16_t port) const {
  AddressClass found = address.classify();
  if (is_never_dialled(found)) return false;
  Decision by_range = decide_any(address, port);
  if (by_range.reason == "denied_by_rule") return false;
  return found == AddressClass::kPublic || by_range.allowed();
}

Explanation explain(const Policy& policy, const HostName& name, uint16_t port) {
  return explain_any(policy, name, name.string(), port);
}

Explanation explain(const Policy& policy, const Address& address, uint16_t port) {
  if (is_never_dialled(address.classify())) return {policy.decide(address, port), ""};
  return explain_any(policy, address, address.string(), port);
}

}  // namespace atl::egress
