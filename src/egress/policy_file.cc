#include "egress/policy_file.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "egress/policy_json.h"
#include "egress/upstream.h"
#include "store/toml_section.h"

namespace atl::egress {
namespace {

void read_target(store::TomlSection& section, const char* key, const std::string& text,
                 std::optional<Rule>& rule) {
  auto target = parse_target(text);
  if (!target) return section.refuse(key, target.error().message());
  rule = Rule{.action = std::string_view(key) == "allow" ? Action::kAllow : Action::kDeny,
              .target = *target};
}

void read_ports(store::TomlSection& section, Rule& rule) {
  std::vector<uint64_t> ports;
  if (!section.wholes("ports", {1, 65535}, ports)) return;
  if (ports.empty() || ports.size() > kMaxPorts)
    return section.refuse("ports", "must be a list of 1 to 32 ports");
  for (uint64_t port : ports) rule.ports.push_back(static_cast<uint16_t>(port));
  std::sort(ports.begin(), ports.end());
  if (std::adjacent_find(ports.begin(), ports.end()) != ports.end())
    section.refuse("ports", "names a port twice");
}

void read_budget(store::TomlSection& section, Budget& budget) {
  auto found = section.section("budget");
  if (!found) return;
  for (const BudgetField& field : kBudgetFields)
    found->whole(field.name, {1, field.most}, budget.*field.value);
  found->finish();
}

void read_mode(store::TomlSection& section, Policy& policy) {
  std::string mode;
  if (!section.text("mode", mode)) return;
  if (mode != "enforce" && mode != "learn") section.refuse("mode", "must be enforce or learn");
  policy.mode = mode == "learn" ? Mode::kLearn : Mode::kEnforce;
}

void read_upstream(store::TomlSection& section, Policy& policy) {
  auto found = section.section("upstream");
  if (!found) return;
  std::string proxy, credentials;
  found->require(found->text("proxy", proxy), "proxy");
  found->text("credentials", credentials);
  found->finish();
  auto made = make_upstream_use(proxy, std::move(credentials));
  if (made)
    policy.upstream = std::move(*made);
  else
    found->refuse_section(made.error().message());
}

void read_inspection(store::TomlSection& section, Rule& rule) {
  bool inspect = false;
  std::vector<std::string> methods, paths;
  section.boolean("inspect", inspect);
  bool has_methods = section.texts("methods", methods);
  bool has_paths = section.texts("paths", paths);
  if (!inspect && (has_methods || has_paths))
    return section.refuse_section("needs inspect = true for methods and paths");
  if ((has_methods && methods.empty()) || (has_paths && paths.empty()))
    return section.refuse_section("has an empty list of methods or paths");
  if (!inspect) return;
  auto made = RequestRule::create(std::move(methods), paths);
  if (made)
    rule.inspection = std::move(*made);
  else
    section.refuse_section(made.error().message());
}

void read_rule(store::TomlSection& section, Policy& policy) {
  std::string allow, deny, protocol;
  bool has_allow = section.text("allow", allow);
  bool has_deny = section.text("deny", deny);
  if (has_allow == has_deny)
    return section.refuse_section("must have exactly one of allow and deny");
  std::optional<Rule> rule;
  read_target(section, has_allow ? "allow" : "deny", has_allow ? allow : deny, rule);
  if (!rule) return;
  read_ports(section, *rule);
  if (section.text("protocol", protocol)) {
    auto parsed = parse_protocol(protocol);
    if (!parsed) return section.refuse("protocol", parsed.error().message());
    rule->protocol = *parsed;
  }
  read_budget(section, rule->budget);
  read_inspection(section, *rule);
  section.finish();
  auto checked = check_rule(*rule);
  if (!checked) return section.refuse_section(checked.error().message());
  policy.rules.push_back(std::move(*rule));
}

void write_budget(std::string& text, const Budget& budget) {
  std::string fields;
  for (const BudgetField& field : kBudgetFields)
    if (budget.*field.value != 0)
      fields += (fields.empty() ? "" : ", ") + std::string(field.name) + " = " +
                std::to_string(budget.*field.value);
  text += "budget = {" + fields + "}\n";
}

void write_upstream(std::string& text, const UpstreamUse& use) {
  text += "upstream = {proxy = \"" + authority_text(use.proxy, use.port) + "\"";
  if (!use.credentials.empty()) text += ", credentials = \"" + use.credentials + "\"";
  text += "}\n";
}

void write_texts(std::string& text, const char* key, const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& one : texts) {
    list += list.empty() ? "\"" : ", \"";
    // No pattern has a backslash or a control character.
    for (char c : one) list += c == '"' ? "\\\"" : std::string(1, c);
    list += '"';
  }
  if (!list.empty()) text += std::string(key) + " = [" + list + "]\n";
}

void write_inspection(std::string& text, const RequestRule& inspection) {
  text += "inspect = true\n";
  write_texts(text, "methods", inspection.methods);
  std::vector<std::string> paths;
  for (const PathPattern& path : inspection.paths) paths.push_back(path.text());
  write_texts(text, "paths", paths);
}

void write_rule(std::string& text, const Rule& rule) {
  text += "[[rules]]\n";
  // Names and ranges have no character that would need to be escaped.
  text +=
      (rule.action == Action::kAllow ? "allow = \"" : "deny = \"") + rule.target_text() + "\"\n";
  std::string ports;
  for (uint16_t port : rule.ports) ports += (ports.empty() ? "" : ", ") + std::to_string(port);
  if (!ports.empty()) text += "ports = [" + ports + "]\n";
  if (rule.protocol != Protocol::kAuto)
    text += "protocol = \"" + std::string(protocol_name(rule.protocol)) + "\"\n";
  if (rule.budget.is_bounded()) write_budget(text, rule.budget);
  if (rule.inspection) write_inspection(text, *rule.inspection);
}

}  // namespace

std::string policy_file_text(const Policy& policy) {
  std::string text = policy.mode == Mode::kLearn ? "mode = \"learn\"\n" : "";
  if (policy.budget.is_bounded()) write_budget(text, policy.budget);
  if (policy.upstream) write_upstream(text, *policy.upstream);
  text += "allow = [";
  std::string separator = "\n";
  for (const Rule& rule : policy.rules)
    if (rule.is_short) {
      text += std::exchange(separator, ",\n") + "  \"" + short_rule_text(rule) + "\"";
    }
  text += separator == "\n" ? "]\n" : "\n]\n";
  for (const Rule& rule : policy.rules)
    if (!rule.is_short) write_rule(text, rule);
  return text;
}

Result<Policy> parse_policy_file(std::string_view text, const std::string& file) {
  if (text.size() > kMaxPolicyFileBytes)
    return Error(Code::kInvalid, file + " is larger than 256 KiB");
  ATOLL_TRY(store::TomlDocument document, store::TomlDocument::parse(text, file));
  store::TomlSection top(document, document.root(), "");
  Policy policy;
  for (store::TomlSection& section : top.sections("rules")) read_rule(section, policy);
  std::vector<std::string> allow;
  top.texts("allow", allow);
  for (const std::string& entry : allow) {
    auto rule = parse_short_rule(entry);
    if (rule)
      policy.rules.push_back(std::move(*rule));
    else
      top.refuse("allow", rule.error().message());
  }
  read_budget(top, policy.budget);
  read_mode(top, policy);
  read_upstream(top, policy);
  top.finish();
  if (policy.rules.size() > kMaxRules) top.refuse_section("has more than 256 rules");
  auto checked = check_budgets(policy);
  if (!checked) top.refuse_section(checked.error().message());
  if (document.error()) return *document.error();
  return policy;
}

}  // namespace atl::egress
