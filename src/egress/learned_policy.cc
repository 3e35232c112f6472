#include "egress/learned_policy.h"

#include <algorithm>

namespace atl::egress {

namespace json = boost::json;

namespace {

std::string text_of(const json::object& row, const char* key) {
  const json::value* value = row.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

uint16_t port_of(const json::object& row) {
  const json::value* value = row.if_contains("port");
  json::error_code error;
  auto port = value != nullptr && value->is_number() ? value->to_number<int64_t>(error) : 0;
  return error || port < 0 || port > 65535 ? 0 : static_cast<uint16_t>(port);
}

bool is_usual(uint16_t port) {
  return std::find(std::begin(kDefaultPorts), std::end(kDefaultPorts), port) !=
         std::end(kDefaultPorts);
}

// What a rule must say for this to be spoken on that port.
Protocol needed_protocol(std::string_view spoken, uint16_t port) {
  if (spoken == "tls") return port == 80 ? Protocol::kTls : Protocol::kAuto;
  if (spoken == "http") return port == 443 ? Protocol::kHttp : Protocol::kAuto;
  return Protocol::kTcp;
}

Rule short_rule(const Target& target, std::vector<uint16_t> ports) {
  return Rule{.target = target, .ports = std::move(ports), .is_short = true};
}

}  // namespace

void LearnedPolicy::add(const json::object& row) {
  if (text_of(row, "decision") != "deny") return;
  std::string event = text_of(row, "event"), reason = text_of(row, "reason");
  bool is_unknown = reason == "no_rule" || reason == "learning" || reason == "port_not_allowed";
  if (event == "packet") return add_packet(row);
  if (event == "connect" && is_unknown) return add_connection(row);
  if (reason == "request_not_allowed") return add_request(row);
  std::string name = text_of(row, "name");
  if (event == "dns" && is_unknown && HostName::parse(name)) asked_.insert(name);
  if (!is_unknown && !name.empty()) impossible_.insert(reason + ": " + name);
}

void LearnedPolicy::add_connection(const json::object& row) {
  std::string protocol = text_of(row, "protocol");
  if (auto name = HostName::parse(text_of(row, "name"))) {
    connected_.insert(name->string());
    return add_use(*name, port_of(row), protocol);
  }
  if (auto range = Cidr::parse(text_of(row, "address"))) add_use(*range, port_of(row), protocol);
}

void LearnedPolicy::add_request(const json::object& row) {
  std::string method = text_of(row, "method"), path = text_of(row, "path");
  auto name = HostName::parse(text_of(row, "name"));
  auto canonical = canonical_path(path);
  if (!name || !canonical) return;
  // A character that stands for others in a pattern would allow more than was asked for.
  bool is_plain = canonical->find_first_of("*?[\\") == canonical->npos;
  if (!is_plain || !RequestRule::create({method}, {*canonical})) {
    impossible_.insert("request_not_allowed: " + method + " " + name->string() + path);
    return;
  }
  std::set<std::string>& paths = requests_[{name->string(), port_of(row), method}];
  if (paths.size() < kMaxPaths) paths.insert(*canonical);
}

void LearnedPolicy::add_packet(const json::object& row) {
  std::string protocol = text_of(row, "protocol"), text = text_of(row, "address");
  uint16_t port = port_of(row);
  auto range = Cidr::parse(text);
  bool may_be = protocol == "tcp" && port != 0 && range && parse_target(text).ok();
  if (may_be) return add_use(*range, port, is_usual(port) ? "tls" : "tcp");
  if (!text.empty())
    impossible_.insert(protocol + " " + text + (port == 0 ? "" : ":" + std::to_string(port)));
}

void LearnedPolicy::add_use(const Target& target, uint16_t port, std::string_view spoken) {
  if (port == 0) return;
  bool is_range = std::holds_alternative<Cidr>(target);
  // The kernel refused it: what would have been said is not known.
  Protocol protocol = is_range && is_usual(port) ? Protocol::kAuto : needed_protocol(spoken, port);
  Rule rule{.target = target, .protocol = protocol};
  std::string key = rule.target_text() + " " + std::string(protocol_name(protocol));
  auto [use, is_new] = uses_.try_emplace(key, rule, std::set<uint16_t>());
  if (use->second.second.size() < kMaxPorts) use->second.second.insert(port);
}

Policy LearnedPolicy::policy() const {
  Policy policy;
  std::vector<Rule> shorts;
  for (const auto& [request, paths] : requests_) {
    auto name = HostName::parse(request.name);
    auto wanted = RequestRule::create({request.method}, {paths.begin(), paths.end()});
    if (!name || !wanted) continue;
    policy.rules.push_back(
        {.target = *name, .ports = {request.port}, .inspection = std::move(*wanted)});
  }
  for (const auto& [key, use] : uses_) {
    const auto& [found, ports] = use;
    if (found.protocol != Protocol::kAuto) {
      Rule rule = found;
      rule.ports.assign(ports.begin(), ports.end());
      policy.rules.push_back(std::move(rule));
      continue;
    }
    bool has_usual = std::all_of(std::begin(kDefaultPorts), std::end(kDefaultPorts),
                                 [&seen = ports](uint16_t port) { return seen.contains(port); });
    if (has_usual) shorts.push_back(short_rule(found.target, {}));
    for (uint16_t port : ports)
      if (!has_usual || !is_usual(port)) shorts.push_back(short_rule(found.target, {port}));
  }
  for (const std::string& text : asked_) {
    auto name = HostName::parse(text);
    if (name && !connected_.contains(text)) shorts.push_back(short_rule(*name, {}));
  }
  policy.rules.insert(policy.rules.end(), shorts.begin(), shorts.end());
  while (policy.rules.size() > kMaxRules) policy.rules.pop_back();
  return policy;
}

}  // namespace atl::egress
