#include "egress/policy_json.h"

#include <algorithm>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "egress/budget_json.h"
#include "egress/inspection_json.h"
#include "egress/invalid_rule.h"

namespace atl::egress {

namespace json = boost::json;

namespace {

constexpr size_t kMaxRuleBytes = 300;
constexpr size_t kMaxJsonDepth = 8;
constexpr std::string_view kKeys[] = {"rules",   "allow",       "budget",   "mode",
                                      "secrets", "set_headers", "upstream", "public_names"};

Error unknown(const std::string& field) {
  return invalid_rule(field, "is unknown").with_reason("unknown_field");
}

Error in_field(const Error& error, const std::string& field) {
  return invalid_rule(field, "is refused: " + error.message());
}

Result<std::string_view> read_text(const json::value& value, const std::string& field) {
  const json::string* text = value.if_string();
  if (text == nullptr || text->size() > kMaxRuleBytes)
    return invalid_rule(field, "must be a text of at most 300 bytes");
  return std::string_view(text->data(), text->size());
}

Result<std::vector<uint16_t>> read_ports(const json::value& value, const std::string& field) {
  const json::array* list = value.if_array();
  if (list == nullptr || list->empty() || list->size() > kMaxPorts)
    return invalid_rule(field, "must be a list of 1 to 32 ports");
  std::vector<uint16_t> ports;
  for (const json::value& one : *list) {
    boost::system::error_code error;
    auto port = one.is_number() ? one.to_number<int64_t>(error) : 0;
    if (error || port < 1 || port > 65535)
      return invalid_rule(field, "may name ports from 1 to 65535");
    if (std::find(ports.begin(), ports.end(), port) != ports.end())
      return invalid_rule(field, "names a port twice");
    ports.push_back(static_cast<uint16_t>(port));
  }
  return ports;
}

Result<Target> read_target(const json::value& value, const std::string& field) {
  ATOLL_TRY(std::string_view text, read_text(value, field));
  auto target = parse_target(text);
  if (!target) return in_field(target.error(), field);
  return target;
}

Result<Rule> read_rule(const json::value& value, const std::string& field) {
  const json::object* object = value.if_object();
  if (object == nullptr) return invalid_rule(field, "must be an object with allow or deny");
  const json::value* allow = object->if_contains("allow");
  const json::value* deny = object->if_contains("deny");
  if ((allow == nullptr) == (deny == nullptr))
    return invalid_rule(field, "must have exactly one of allow and deny");
  ATOLL_TRY(Target target, read_target(allow ? *allow : *deny, field));
  Rule rule{.action = allow ? Action::kAllow : Action::kDeny, .target = target};
  for (const auto& [key, entry] : *object) {
    if (key == "allow" || key == "deny" || is_inspection_key(key)) continue;
    if (key == "ports") {
      ATOLL_TRY(rule.ports, read_ports(entry, field + ".ports"));
    } else if (key == "protocol") {
      ATOLL_TRY(std::string_view text, read_text(entry, field + ".protocol"));
      auto protocol = parse_protocol(text);
      if (!protocol) return in_field(protocol.error(), field + ".protocol");
      rule.protocol = *protocol;
    } else if (key == "budget") {
      ATOLL_TRY(rule.budget, budget_from_json(entry, field + ".budget"));
    } else {
      return unknown(field + "." + std::string(key));
    }
  }
  ATOLL_TRY(rule.inspection, read_inspection(*object, field));
  auto checked = check_rule(rule);
  if (!checked) return in_field(checked.error(), field);
  return rule;
}

Result<Rule> read_short(const json::value& value, const std::string& field) {
  ATOLL_TRY(std::string_view text, read_text(value, field));
  auto rule = parse_short_rule(text);
  if (!rule) return in_field(rule.error(), field);
  return rule;
}

Result<void> read_list(const json::object& object, const char* key, Policy& policy) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr) return {};
  const json::array* list = value->if_array();
  if (list == nullptr) return invalid_rule(key, "must be a list");
  if (policy.rules.size() + list->size() > kMaxRules)
    return invalid_rule(key, "is too long: at most 256 rules in all");
  bool is_short = std::string_view(key) == "allow";
  for (size_t i = 0; i < list->size(); ++i) {
    std::string field = std::string(key) + "[" + std::to_string(i) + "]";
    auto rule = is_short ? read_short((*list)[i], field) : read_rule((*list)[i], field);
    if (!rule) return std::move(rule).error();
    policy.rules.push_back(std::move(*rule));
  }
  return {};
}

bool leaves_requests(const Rule& rule) {
  return rule.inspection && !(rule.inspection->methods.empty() && rule.inspection->paths.empty());
}

bool may_name_same(const Rule& one, const Rule& other) {
  if (const auto* name = std::get_if<HostName>(&one.target)) return other.names(*name);
  if (const auto* name = std::get_if<HostName>(&other.target)) return one.names(*name);
  const auto* beneath = std::get_if<AnyBeneath>(&one.target);
  const auto* other_beneath = std::get_if<AnyBeneath>(&other.target);
  if (beneath == nullptr || other_beneath == nullptr) return false;
  return *beneath == *other_beneath || one.names(other_beneath->suffix) ||
         other.names(beneath->suffix);
}

bool may_allow_same(const Rule& one, const Rule& other) {
  if (one.action != Action::kAllow || other.action != Action::kAllow) return false;
  std::vector<uint16_t> ports = one.ports;
  if (ports.empty()) ports.assign(std::begin(kDefaultPorts), std::end(kDefaultPorts));
  bool shares_port =
      std::any_of(ports.begin(), ports.end(), [&](uint16_t port) { return other.has_port(port); });
  return shares_port && may_name_same(one, other);
}

}  // namespace

Result<Protocol> parse_protocol(std::string_view text) {
  for (Protocol one : {Protocol::kAuto, Protocol::kTls, Protocol::kHttp, Protocol::kTcp})
    if (text == protocol_name(one)) return one;
  return Error(Code::kInvalid, "the protocol is auto, tls, http or tcp");
}

Result<void> check_rule(const Rule& rule) {
  if (rule.action == Action::kDeny && rule.protocol != Protocol::kAuto)
    return Error(Code::kInvalid, "a rule that denies has no protocol");
  if (rule.action == Action::kDeny && rule.budget.is_bounded())
    return Error(Code::kInvalid, "a rule that denies has no budget");
  if (!rule.inspection) return {};
  bool can_inspect = rule.action == Action::kAllow && rule.protocol != Protocol::kTcp &&
                     !std::holds_alternative<Cidr>(rule.target);
  if (!can_inspect)
    return Error(Code::kInvalid, "only a rule that allows TLS or HTTP to a name can inspect");
  return {};
}

Result<void> check_budgets(const Policy& policy) {
  for (size_t later = 1; later < policy.rules.size(); ++later)
    for (size_t first = 0; first < later; ++first) {
      const Rule& one = policy.rules[first];
      const Rule& other = policy.rules[later];
      bool has_budget = one.budget.is_bounded() || other.budget.is_bounded();
      if (!has_budget || !leaves_requests(one) || !may_allow_same(one, other)) continue;
      return Error(Code::kInvalid, policy.rule_name(first) + " and " + policy.rule_name(later) +
                                       " decide requests of the same hosts, so neither can have a "
                                       "budget: give it to the whole policy");
    }
  return {};
}

Result<Policy> policy_from_json(const json::object& object) {
  for (const auto& [key, value] : object)
    if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys))
      return unknown(std::string(key));
  Policy policy;
  if (const json::value* budget = object.if_contains("budget")) {
    ATOLL_TRY(policy.budget, budget_from_json(*budget, "budget"));
  }
  if (const json::value* mode = object.if_contains("mode")) {
    ATOLL_TRY(std::string_view text, read_text(*mode, "mode"));
    if (text != "enforce" && text != "learn")
      return invalid_rule("mode", "must be enforce or learn");
    policy.mode = text == "learn" ? Mode::kLearn : Mode::kEnforce;
  }
  if (const json::value* names = object.if_contains("public_names")) {
    if (!names->is_bool()) return invalid_rule("public_names", "must be true or false");
    policy.public_names = names->get_bool();
  }
  ATOLL_TRY_VOID(read_list(object, "rules", policy));
  ATOLL_TRY_VOID(read_list(object, "allow", policy));
  ATOLL_TRY(policy.secrets, read_secret_uses(object));
  ATOLL_TRY(policy.set_headers, read_header_settings(object));
  ATOLL_TRY(policy.upstream, read_upstream_use(object));
  auto checked = check_budgets(policy);
  if (!checked) return in_field(checked.error(), "rules");
  return policy;
}

Result<Policy> parse_policy_json(std::string_view text) {
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  boost::system::error_code error;
  json::value value = json::parse({text.data(), text.size()}, error, {}, options);
  if (error || !value.is_object())
    return Error(Code::kInvalid, "the policy is not a JSON object").with_field("network");
  return policy_from_json(value.get_object());
}

std::string policy_text(const Policy& policy) { return json::serialize(policy_to_json(policy)); }

json::object policy_to_json(const Policy& policy) {
  json::array rules, allow;
  for (const Rule& rule : policy.rules) {
    if (rule.is_short) {
      std::string text = short_rule_text(rule);
      allow.emplace_back(text);
      continue;
    }
    json::object entry;
    entry[rule.action == Action::kAllow ? "allow" : "deny"] = rule.target_text();
    if (!rule.ports.empty()) {
      json::array ports;
      for (uint16_t port : rule.ports) ports.emplace_back(port);
      entry["ports"] = std::move(ports);
    }
    if (rule.protocol != Protocol::kAuto) {
      std::string_view name = protocol_name(rule.protocol);
      entry["protocol"] = json::string(name.data(), name.size());
    }
    if (rule.budget.is_bounded()) entry["budget"] = budget_to_json(rule.budget);
    if (rule.inspection) write_inspection(*rule.inspection, entry);
    rules.emplace_back(std::move(entry));
  }
  json::object object;
  object["allow"] = std::move(allow);
  if (!rules.empty()) object["rules"] = std::move(rules);
  if (policy.budget.is_bounded()) object["budget"] = budget_to_json(policy.budget);
  if (policy.mode == Mode::kLearn) object["mode"] = "learn";
  if (policy.public_names) object["public_names"] = true;
  if (!policy.secrets.empty()) object["secrets"] = secret_uses_json(policy.secrets);
  if (!policy.set_headers.empty()) object["set_headers"] = header_settings_json(policy.set_headers);
  if (policy.upstream) object["upstream"] = upstream_use_json(*policy.upstream);
  return object;
}

}  // namespace atl::egress
