#include "api/e2b/sandbox_request.h"

#include <algorithm>

#include <boost/json/serialize.hpp>

#include "api/e2b/network_rules.h"
#include "api/e2b/volumes.h"
#include "api/json_reader.h"
#include "egress/policy.h"
#include "sandbox/environment.h"
#include "sandbox/fork.h"
#include "sandbox/network.h"

namespace atl::api::e2b {

namespace json = boost::json;
using sandbox::CreateSandbox;
using sandbox::E2bInternet;

namespace {

constexpr size_t kMaxNameBytes = 128;
constexpr size_t kMaxPairs = 256;
constexpr size_t kMaxPairBytes = 8 * 1024;
constexpr size_t kMaxTargetBytes = 256;

struct Missing {
  std::string_view field, message;
};
// True, or not empty, they ask for something that would otherwise silently not happen.
constexpr Missing kMissing[] = {
    {"mcp", "there is no MCP gateway: leave out mcp"},
    {"iam", "there are no workload tokens: leave out iam"},
};
constexpr Missing kMissingOfNetwork[] = {
    {"egressProxy", "there is no proxy of the caller's: leave out network.egressProxy"},
    {"maskRequestHost", "the host name is not replaced: leave out network.maskRequestHost"},
    {"httpsPorts", "no TLS is spoken to ports inside: leave out network.httpsPorts"},
};

constexpr std::string_view kKeepsMemory =
    "a paused sandbox keeps its memory: leave out memory and autoPauseMemory";

bool is_false(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  return value && value->is_bool() && !value->get_bool();
}

bool asks(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  if (!value || value->is_null()) return false;
  if (value->is_bool()) return value->get_bool();
  if (value->is_object()) return !value->get_object().empty();
  if (value->is_array()) return !value->get_array().empty();
  return true;
}

template <size_t N>
Result<void> refuse_missing(const json::object& object, const Missing (&missing)[N]) {
  for (const Missing& entry : missing)
    if (asks(object, entry.field)) return unsupported(std::string(entry.message));
  return {};
}

std::string to_json_text(const TextPairs& pairs) {
  json::object object;
  for (const auto& [name, value] : pairs) object[name] = value;
  return json::serialize(object);
}

uint64_t timeout_of(ObjectReader& reader, std::optional<uint64_t> default_seconds) {
  constexpr uint64_t kMaxSeconds = sandbox::kMaxTtlMs / 1000;
  if (!reader.has("timeout") && default_seconds) return *default_seconds * 1000;
  auto seconds = reader.optional_integer("timeout", 1, kMaxSeconds);
  if (!seconds) reader.refuse("timeout", "must be greater than 0 and at most 30 days");
  return seconds.value_or(1) * 1000;
}

// An empty body is an object without fields.
Result<json::object> parse_body(std::string_view body) {
  return body.empty() ? Result<json::object>(json::object()) : parse_object(body);
}

// "0.0.0.0/0" and the like: everything.
bool denies_all(const std::vector<std::string>& denied) {
  return std::find(denied.begin(), denied.end(), "0.0.0.0/0") != denied.end();
}

Error refused_target(const char* field, const std::string& why) {
  std::string name = std::string("network.") + field;
  return Error(Code::kInvalid, name + ": " + why).with_reason("invalid_field").with_field(name);
}

Result<void> add_denied(const std::vector<std::string>& denied, egress::Policy& policy) {
  for (const std::string& text : denied) {
    auto range = egress::Cidr::parse(text);
    if (!range) return refused_target("denyOut", "\"" + text + "\" is no address and no range");
    policy.rules.push_back({.action = egress::Action::kDeny, .target = *range});
  }
  return {};
}

// Names that may be reached. Without the internet everything else is denied, so what is to be
// denied is so already.
Result<egress::Policy> policy_of(const json::object& network, E2bInternet internet) {
  ATOLL_TRY_VOID(refuse_missing(network, kMissingOfNetwork));
  ObjectReader reader(network, "network.");
  auto names = reader.optional_texts("allowOut", egress::kMaxRules, kMaxTargetBytes);
  auto denied = reader.optional_texts("denyOut", egress::kMaxRules / 2, kMaxTargetBytes);
  ATOLL_TRY_VOID(reader.settle());
  std::vector<std::string> no_texts;
  egress::Policy policy;
  policy.public_names =
      internet == E2bInternet::kAllowed && !denies_all(denied ? *denied : no_texts);
  for (const std::string& name : names ? *names : no_texts) {
    auto rule = egress::parse_short_rule(name);
    if (!rule) return refused_target("allowOut", rule.error().message());
    // What is allowed wins: it stands before what is denied.
    rule->is_short = !policy.public_names;
    policy.rules.push_back(std::move(*rule));
  }
  if (policy.public_names) ATOLL_TRY_VOID(add_denied(denied ? *denied : no_texts, policy));
  ATOLL_TRY(policy.set_headers, parse_network_rules(network));
  return policy;
}

// Who says nothing asks for the internet, as with E2B.
bool declines_internet(const json::object& object) {
  const json::value* allow = object.if_contains("allow_internet_access");
  return allow && allow->is_bool() && !allow->get_bool();
}

// Nothing: what the template says, which is "nothing" of those that come with Atoll.
Result<std::optional<std::string>> network_of(const json::object& object, E2bInternet ceiling) {
  bool denied = declines_internet(object);
  E2bInternet internet = denied ? E2bInternet::kDenied : ceiling;
  const json::value* network = object.if_contains("network");
  bool has_network = network && network->is_object() && !network->get_object().empty();
  if (!has_network && !denied && internet == E2bInternet::kDenied)
    return std::optional<std::string>();
  json::object nothing;
  ATOLL_TRY(egress::Policy policy,
            policy_of(has_network ? network->get_object() : nothing, internet));
  ATOLL_TRY(std::string text, sandbox::network_text(policy));
  return std::optional(std::move(text));
}

}  // namespace

Error unsupported(std::string message) {
  return Error(Code::kUnsupported, std::move(message)).with_reason("e2b_unsupported");
}

Result<CreateSandbox> parse_create(std::string_view body, uint64_t default_seconds,
                                   E2bInternet ceiling) {
  ATOLL_TRY(json::object object, parse_body(body));
  ATOLL_TRY_VOID(refuse_missing(object, kMissing));
  ObjectReader reader(object);
  CreateSandbox request;
  if (is_false(object, "autoPauseMemory")) return unsupported(std::string(kKeepsMemory));
  request.template_name = reader.text("templateID", kMaxNameBytes);
  request.snapshot = parse_snapshot_id(request.template_name);
  if (reader.optional_boolean("autoPause").value_or(false)) request.on_ttl = "pause";
  if (const json::object* resume = reader.optional_object("autoResume"))
    request.auto_resume = asks(*resume, "enabled");
  request.ttl_ms = timeout_of(reader, default_seconds);
  request.idle_ttl_ms = 0;  // E2B has no such thing
  request.metadata = to_json_text(reader.text_pairs("metadata", kMaxPairs, kMaxPairBytes));
  TextPairs variables = reader.text_pairs("envVars", kMaxPairs, kMaxPairBytes);
  for (const auto& [name, value] : variables)
    if (!sandbox::is_variable_name(name))
      reader.refuse("envVars", "has a name that no variable can have");
  request.environment = to_json_text(variables);
  ATOLL_TRY_VOID(reader.settle());
  ATOLL_TRY(request.network, network_of(object, ceiling));
  ATOLL_TRY(request.volumes, parse_volume_mounts(object));
  return request;
}

std::optional<SnapshotId> parse_snapshot_id(std::string_view text) {
  return SnapshotId::parse(text.substr(0, text.find(':')));
}

Result<void> check_memory(std::string_view body) {
  ATOLL_TRY(json::object object, parse_body(body));
  if (is_false(object, "memory")) return unsupported(std::string(kKeepsMemory));
  return {};
}

Result<Fork> parse_fork(std::string_view body) {
  ATOLL_TRY(json::object object, parse_body(body));
  ObjectReader reader(object);
  Fork fork;
  fork.count = reader.optional_small("count", 1, sandbox::kMaxForks).value_or(1);
  fork.ttl_ms = timeout_of(reader, kFirstTimeoutSeconds);
  ATOLL_TRY_VOID(reader.settle());
  return fork;
}

Result<uint64_t> parse_timeout(std::string_view body, std::optional<uint64_t> default_seconds) {
  ATOLL_TRY(json::object object, parse_body(body));
  ObjectReader reader(object);
  uint64_t milliseconds = timeout_of(reader, default_seconds);
  ATOLL_TRY_VOID(reader.settle());
  return milliseconds;
}

Result<std::string> parse_network(std::string_view body, E2bInternet ceiling) {
  ATOLL_TRY(json::object object, parse_body(body));
  ATOLL_TRY(egress::Policy policy,
            policy_of(object, declines_internet(object) ? E2bInternet::kDenied : ceiling));
  return sandbox::network_text(policy);
}

}  // namespace atl::api::e2b
