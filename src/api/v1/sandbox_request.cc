#include "api/v1/sandbox_request.h"

#include <algorithm>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/v1/volumes.h"
#include "egress/policy_json.h"
#include "sandbox/environment.h"
#include "sandbox/network.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::ChangeSandbox;
using sandbox::CreateSandbox;
using sandbox::OnNameConflict;

namespace {

constexpr size_t kMaxPairs = 64;
constexpr size_t kMaxPairBytes = 8 * 1024;
constexpr size_t kMaxRequired = 16;
constexpr size_t kMaxRequiredBytes = 64;
constexpr size_t kMaxNameBytes = 63;
constexpr size_t kMaxMetadataFilters = 16;
constexpr std::string_view kStates[] = {"creating", "running", "paused", "failed", "deleting"};

// Never one that could be an id: a path names a sandbox by either.
bool is_name(std::string_view text) {
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.size() <= kMaxNameBytes && text[0] >= 'a' && text[0] <= 'z' &&
         std::all_of(text.begin(), text.end(), allowed) && !SandboxId::parse(text);
}

OnNameConflict parse_on_name_conflict(ObjectReader& reader) {
  auto choice = reader.optional_text("on_name_conflict", 16);
  if (!choice || *choice == "error") return OnNameConflict::kError;
  if (*choice != "use") reader.refuse("on_name_conflict", "must be \"error\" or \"use\"");
  return OnNameConflict::kUse;
}

// What the end of a ttl does.
std::optional<std::string> parse_on_ttl(ObjectReader& reader) {
  auto choice = reader.optional_text("on_ttl", 16);
  if (choice && *choice != "delete" && *choice != "pause")
    reader.refuse("on_ttl", "must be \"delete\" or \"pause\"");
  return choice;
}

std::optional<std::string> parse_checkpoint(ObjectReader& reader) {
  auto choice = reader.optional_text("checkpoint", 16);
  if (choice && *choice != "none" && *choice != "each")
    reader.refuse("checkpoint", "must be \"none\" or \"each\"");
  return choice;
}

// No driver here keeps memory.
std::optional<std::string> parse_persistence(ObjectReader& reader) {
  auto choice = reader.optional_text("persistence", 16);
  if (choice == "checkpoint")
    reader.refuse("persistence", "of memory is not to be had on this host",
                  "persistence_unavailable");
  else if (choice && *choice != "ephemeral" && *choice != "persistent")
    reader.refuse("persistence", "must be \"ephemeral\", \"persistent\" or \"checkpoint\"");
  return choice;
}

Error invalid(std::string_view field, std::string message) {
  return Error(Code::kInvalid, std::move(message)).with_reason("invalid_field").with_field(field);
}

std::string to_json_text(const TextPairs& pairs) {
  json::object object;
  for (const auto& [name, value] : pairs) object[name] = value;
  return json::serialize(object);
}

isolate::OnOom parse_on_oom(ObjectReader& reader) {
  auto choice = reader.optional_text("on_oom", 16);
  if (!choice || *choice == "exec") return isolate::OnOom::kEndExec;
  if (*choice != "sandbox") reader.refuse("on_oom", "must be \"exec\" or \"sandbox\"");
  return isolate::OnOom::kEndSandbox;
}

uint32_t parse_required_extras(ObjectReader& reader) {
  uint32_t bits = 0;
  auto names = reader.optional_texts("require", kMaxRequired, kMaxRequiredBytes);
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    auto found = std::find_if(std::begin(sandbox::kExtras), std::end(sandbox::kExtras),
                              [&](const sandbox::NamedExtra& extra) { return extra.name == name; });
    if (found == std::end(sandbox::kExtras)) {
      reader.refuse("require",
                    "may name landlock, time_namespace, simple_quotas and "
                    "hardware_virtualization");
    } else {
      bits |= static_cast<uint32_t>(found->extra);
    }
  }
  return bits;
}

// Of a create and of a change alike.
template <typename Request>
void parse_common_limits(ObjectReader& reader, Request& request) {
  request.cpu_millis =
      reader.optional_thousandths("cpu", isolate::kMinCpuMillis, isolate::kMaxCpuMillis);
  request.memory_bytes =
      reader.optional_integer("memory_bytes", isolate::kMinMemoryBytes, isolate::kMaxMemoryBytes);
  request.pids = reader.optional_small("pids", isolate::kMinPids, isolate::kMaxPids);
  request.disk_bytes =
      reader.optional_integer("disk_bytes", isolate::kMinDiskBytes, isolate::kMaxDiskBytes);
  request.output_bytes = reader.optional_integer("output_bytes", 0, sandbox::kMaxOutputLimitBytes);
  request.open_files =
      reader.optional_small("open_files", isolate::kMinOpenFiles, isolate::kMaxOpenFiles);
  request.disk_bytes_per_second = reader.optional_integer(
      "disk_bytes_per_second", isolate::kMinDiskBytesPerSecond, isolate::kMaxDiskBytesPerSecond);
  request.cpu_time_ms = reader.optional_small("cpu_time_ms", 1, sandbox::kMaxCpuTimeMs);
}

void parse_limits(const json::object& object, CreateSandbox& request, ObjectReader& outer) {
  ObjectReader reader(object, "limits.");
  parse_common_limits(reader, request);
  request.on_oom = parse_on_oom(reader);
  auto finished = reader.finish();
  if (!finished) outer.adopt(std::move(finished).error());
}

// Null takes a limit away, where there may be none.
void parse_limits(const json::object& object, ChangeSandbox& request, ObjectReader& outer) {
  ObjectReader reader(object, "limits.");
  parse_common_limits(reader, request);
  if (reader.is_null("disk_bytes_per_second")) request.disk_bytes_per_second = 0;
  if (reader.is_null("cpu_time_ms")) request.cpu_time_ms = 0;
  if (reader.has("on_oom"))
    reader.refuse("on_oom", "cannot be changed once the sandbox exists", "limit_fixed");
  auto finished = reader.finish();
  if (!finished) outer.adopt(std::move(finished).error());
}

// Given twice or malformed, it must not be as if it were not there.
Result<std::optional<std::string>> at_most_one(const std::string& query, const char* name) {
  auto values = http::query_parameters(query, name);
  if (!values || values->size() > 1)
    return invalid(name, std::string(name) + " may be there once, in UTF-8");
  if (values->empty()) return std::optional<std::string>();
  return std::optional(std::move(values->front()));
}

// "key:value" of each, as the rows want them.
Result<std::string> parse_metadata_filters(const std::string& query) {
  auto filters = http::query_parameters(query, "metadata");
  if (!filters || filters->size() > kMaxMetadataFilters)
    return invalid("metadata", "metadata may be there at most 16 times, in UTF-8");
  json::array pairs;
  for (const std::string& filter : *filters) {
    size_t colon = filter.find(':');
    if (colon == filter.npos || colon == 0)
      return invalid("metadata", "metadata must be of the form key:value");
    pairs.push_back(json::array{filter.substr(0, colon), filter.substr(colon + 1)});
  }
  return json::serialize(pairs);
}

void parse_isolation(ObjectReader& reader, CreateSandbox& request) {
  auto name = reader.optional_text("isolation", 32);
  if (!name) return;
  if (*name == "auto") {
    request.preference = sandbox::Preference::kStrongest;
    return;
  }
  request.isolation = store::parse_isolation(*name);
  if (!request.isolation) reader.refuse("isolation", "must be jail, gvisor, microvm or auto");
}

// {"allow": […], "rules": […]}
std::optional<std::string> parse_network(ObjectReader& reader) {
  const json::object* object = reader.optional_object("network");
  if (object == nullptr) return std::nullopt;
  auto policy = egress::policy_from_json(*object);
  if (policy && policy->public_names) {
    reader.refuse("network.public_names", "is what an operator allows, not a request");
    return std::nullopt;
  }
  auto is_drawn = [](const egress::SecretUse& use) { return !use.placeholder.empty(); };
  if (policy && std::any_of(policy->secrets.begin(), policy->secrets.end(), is_drawn)) {
    reader.refuse("network.secrets", "must be a list of names");
    return std::nullopt;
  }
  Result<std::string> text =
      policy ? sandbox::network_text(*policy) : Result<std::string>(std::move(policy).error());
  if (text) return std::move(*text);
  reader.adopt(std::move(text).error());
  return std::nullopt;
}

// Whether it may be one that is there already.
void parse_sharing(ObjectReader& reader, CreateSandbox& request) {
  request.on_name_conflict = parse_on_name_conflict(reader);
  bool is_shared = reader.optional_boolean("singleton").value_or(true);
  request.sharing = is_shared ? sandbox::Sharing::kSingleton : sandbox::Sharing::kOwn;
}

enum class MadeFor : unsigned char { kItself, kRun };

Result<CreateSandbox> parse(std::string_view body, MadeFor made_for,
                            std::vector<std::string> taken_before) {
  ATOLL_TRY(json::object object, parse_object(body));
  CreateSandbox request;
  ATOLL_TRY(request.volumes, take_volumes(object));
  taken_before.emplace_back("volumes");
  ObjectReader reader(object, "", std::move(taken_before));
  auto snapshot = reader.optional_text("snapshot", SnapshotId::kLength);
  if (snapshot) {
    request.snapshot = SnapshotId::parse(*snapshot);
    if (!request.snapshot) reader.refuse("snapshot", "is not the id of a snapshot");
    if (reader.has("template")) reader.refuse("template", "and snapshot exclude each other");
  } else {
    request.template_name = reader.text("template", 128);
  }
  request.name = reader.optional_text("name", kMaxNameBytes);
  if (request.name && !is_name(*request.name))
    reader.refuse("name", "must begin with a letter, have only a-z, 0-9 and -, and not be an id");
  if (made_for == MadeFor::kItself)
    parse_sharing(reader, request);
  else
    request.sharing = sandbox::Sharing::kOwn;
  parse_isolation(reader, request);
  if (const json::object* limits = reader.optional_object("limits"))
    parse_limits(*limits, request, reader);
  request.required_extras = parse_required_extras(reader);
  request.ttl_ms = reader.optional_integer("ttl_ms", 1, sandbox::kMaxTtlMs);
  request.idle_ttl_ms =
      reader.optional_integer("idle_ttl_ms", sandbox::kMinIdleTtlMs, sandbox::kMaxTtlMs);
  request.on_ttl = parse_on_ttl(reader).value_or("delete");
  request.auto_resume = reader.optional_boolean("auto_resume").value_or(false);
  request.files_only_after_ms =
      reader.optional_integer("files_only_after_ms", 1, sandbox::kMaxTtlMs);
  request.files_only_under_pressure =
      reader.optional_boolean("files_only_under_pressure").value_or(false);
  request.checkpoint = parse_checkpoint(reader).value_or("none");
  request.persistence = parse_persistence(reader);
  request.metadata = to_json_text(reader.text_pairs("metadata", kMaxPairs, kMaxPairBytes));
  TextPairs variables = reader.text_pairs("env", kMaxPairs, kMaxPairBytes);
  for (const auto& [name, value] : variables)
    if (!sandbox::is_variable_name(name))
      reader.refuse("env", "has a name that no variable can have");
  request.environment = to_json_text(variables);
  request.network = parse_network(reader);
  ATOLL_TRY_VOID(reader.finish());
  return request;
}

}  // namespace

Result<CreateSandbox> parse_create(std::string_view body) {
  return parse(body, MadeFor::kItself, {});
}

Result<CreateSandbox> parse_create_of_run(std::string_view body,
                                          std::vector<std::string> taken_before) {
  return parse(body, MadeFor::kRun, std::move(taken_before));
}

Result<ChangeSandbox> parse_change(std::string_view body) {
  ATOLL_TRY(json::object object, parse_object(body));
  ObjectReader reader(object);
  ChangeSandbox request;
  request.ttl_ms = reader.optional_integer("ttl_ms", 1, sandbox::kMaxTtlMs);
  request.idle_ttl_ms =
      reader.optional_integer("idle_ttl_ms", sandbox::kMinIdleTtlMs, sandbox::kMaxTtlMs);
  if (reader.is_null("idle_ttl_ms")) request.idle_ttl_ms = 0;
  request.on_ttl = parse_on_ttl(reader);
  request.auto_resume = reader.optional_boolean("auto_resume");
  request.files_only_after_ms =
      reader.optional_integer("files_only_after_ms", 1, sandbox::kMaxTtlMs);
  if (reader.is_null("files_only_after_ms")) request.files_only_after_ms = 0;
  request.files_only_under_pressure = reader.optional_boolean("files_only_under_pressure");
  request.checkpoint = parse_checkpoint(reader);
  TextPairs metadata = reader.text_pairs("metadata", kMaxPairs, kMaxPairBytes);
  if (reader.has("metadata")) request.metadata = to_json_text(metadata);
  if (const json::object* limits = reader.optional_object("limits"))
    parse_limits(*limits, request, reader);
  request.network = parse_network(reader);
  for (const char* name : {"ttl_ms", "on_ttl", "auto_resume", "files_only_under_pressure",
                           "checkpoint", "metadata", "limits", "network"})
    if (reader.is_null(name)) reader.refuse(name, "must not be null");
  ATOLL_TRY_VOID(reader.finish());
  return request;
}

Result<store::SandboxQuery> parse_query(const std::string& query) {
  store::SandboxQuery wanted;
  auto limit = page_limit(query);
  if (!limit) return invalid("limit", "limit must be a whole number from 1 to 1000");
  wanted.limit = *limit;
  ATOLL_TRY(auto cursor, at_most_one(query, "cursor"));
  if (cursor) {
    wanted.after = store::SandboxCursor::parse(*cursor);
    if (!wanted.after) return invalid("cursor", "cursor is not one that this API gave out");
  }
  ATOLL_TRY(wanted.state, at_most_one(query, "state"));
  if (wanted.state &&
      std::find(std::begin(kStates), std::end(kStates), *wanted.state) == std::end(kStates))
    return invalid("state", "state must be creating, running, paused, failed or deleting");
  ATOLL_TRY(wanted.metadata, parse_metadata_filters(query));
  return wanted;
}

}  // namespace atl::api::v1
