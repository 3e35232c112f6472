#include "api/e2b/network_rules.h"

#include <boost/json/array.hpp>

#include "api/e2b/sandbox_request.h"
#include "egress/policy_json.h"

namespace atl::api::e2b {

namespace json = boost::json;
using egress::HeaderSetting;

namespace {

constexpr char kField[] = "network.rules";
// What names a secret, to E2B's clients and to a policy.
constexpr std::string_view kTheirs = "${e2b.secrets.";
constexpr std::string_view kOurs = "${secrets.";
constexpr std::string_view kTokens = "${e2b.identity.";

Error invalid(const std::string& why) {
  return Error(Code::kInvalid, std::string(kField) + " " + why)
      .with_reason("invalid_field")
      .with_field(kField);
}

std::string replace_all(std::string text, std::string_view before, std::string_view after) {
  for (size_t at = text.find(before); at != text.npos; at = text.find(before, at + after.size()))
    text.replace(at, before.size(), after);
  return text;
}

Result<void> add_headers(const std::string& host, const json::object& headers,
                         std::vector<HeaderSetting>& settings) {
  for (const auto& [name, value] : headers) {
    const json::string* text = value.if_string();
    if (text == nullptr) return invalid("must have texts as headers");
    std::string_view given(text->data(), text->size());
    if (given.find(kTokens) != given.npos)
      return unsupported("there are no workload tokens: leave out ${e2b.identity…}");
    std::string written = replace_all(std::string(given), kTheirs, kOurs);
    auto setting = HeaderSetting::create(host, std::string(name), std::move(written));
    if (!setting) return invalid("for " + host + ": " + setting.error().message());
    settings.push_back(std::move(*setting));
    if (settings.size() > egress::kMaxHeaderSettings) return invalid("set more than 64 headers");
  }
  return {};
}

Result<void> add_rule(const std::string& host, const json::value& rule,
                      std::vector<HeaderSetting>& settings) {
  if (!rule.is_object()) return invalid("must be lists of objects");
  const json::value* transform = rule.get_object().if_contains("transform");
  if (transform == nullptr || transform->is_null()) return {};
  if (!transform->is_object()) return invalid("must have objects as transform");
  const json::value* headers = transform->get_object().if_contains("headers");
  if (headers == nullptr || headers->is_null()) return {};
  if (!headers->is_object()) return invalid("must have an object as headers");
  return add_headers(host, headers->get_object(), settings);
}

json::object rules_json(const std::vector<HeaderSetting>& settings) {
  json::object rules;
  for (const HeaderSetting& setting : settings) {
    json::value& list = rules[setting.host_text()];
    if (!list.is_array()) list = json::array{{{"transform", {{"headers", json::object()}}}}};
    json::object& transform = list.get_array()[0].get_object()["transform"].get_object();
    transform["headers"].get_object()[setting.name] = replace_all(setting.value, kOurs, kTheirs);
  }
  return rules;
}

}  // namespace

Result<std::vector<HeaderSetting>> parse_network_rules(const json::object& network) {
  std::vector<HeaderSetting> settings;
  const json::value* rules = network.if_contains("rules");
  if (rules == nullptr || rules->is_null()) return settings;
  if (!rules->is_object()) return invalid("must be an object");
  for (const auto& [host, list] : rules->get_object()) {
    if (!list.is_array()) return invalid("must be lists of objects");
    for (const json::value& rule : list.get_array())
      ATOLL_TRY_VOID(add_rule(std::string(host), rule, settings));
  }
  return settings;
}

json::object network_json(const std::string& network) {
  json::object object;
  auto policy = egress::parse_policy_json(network);
  if (!policy) return object;
  json::array allowed, denied;
  for (const egress::Rule& rule : policy->rules)
    (rule.action == egress::Action::kAllow ? allowed : denied).emplace_back(rule.target_text());
  object["allowOut"] = std::move(allowed);
  object["denyOut"] = std::move(denied);
  if (!policy->set_headers.empty()) object["rules"] = rules_json(policy->set_headers);
  return object;
}

}  // namespace atl::api::e2b
