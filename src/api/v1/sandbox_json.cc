#include "api/v1/sandbox_json.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include "api/v1/not_carried_json.h"
#include "api/v1/volumes.h"
#include "base/clock.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::Sandbox;

namespace {

// Zero stands for none in rows.
json::value or_null(uint64_t number) {
  return number == 0 ? json::value(nullptr) : json::value(number);
}

json::object limits_json(const store::SandboxRow& row) {
  json::object limits;
  limits["cpu"] = row.cpu_millis / 1000.0;
  limits["memory_bytes"] = row.memory_bytes;
  limits["pids"] = row.pids;
  limits["disk_bytes"] = row.disk_bytes;
  limits["output_bytes"] = row.output_bytes;
  limits["open_files"] = row.open_files;
  limits["disk_bytes_per_second"] = or_null(row.disk_bytes_per_second);
  limits["cpu_time_ms"] = or_null(row.cpu_time_ms);
  limits["on_oom"] = row.on_oom;
  return limits;
}

json::array extras_json(uint32_t bits) {
  json::array names;
  for (const sandbox::NamedExtra& extra : sandbox::kExtras)
    if (bits & static_cast<uint32_t>(extra.extra)) names.emplace_back(extra.name);
  return names;
}

json::object network_json(const std::string& stored) {
  json::error_code error;
  json::value parsed = json::parse(stored, error);
  json::object network = parsed.is_object() ? parsed.get_object() : json::object();
  if (!network.contains("allow")) network["allow"] = json::array();
  json::value* secrets = network.if_contains("secrets");
  if (secrets == nullptr) return network;
  json::array names;
  for (const json::value& use : secrets->as_array())
    names.push_back(use.is_object() ? use.as_object().at("name") : use);
  *secrets = std::move(names);
  return network;
}

// Of one that lives its row may still say what it was made as.
bool is_paused(const store::SandboxRow& row) {
  return row.paused_at_ms != 0 && (row.state == "running" || row.state == "creating");
}

// Of one that is paused: since when, and whether it has more than its files.
json::value pause_json(const store::SandboxRow& row, const Sandbox* live) {
  if (!is_paused(row)) return nullptr;
  bool memory = live ? sandbox::holds_memory(*live) : !row.released;
  std::vector<sandbox::NotCarried> lost;
  if (!memory) lost = sandbox::decode_not_carried(row.released.value_or(""));
  json::object pause;
  pause["since"] = to_rfc3339(WallTime{std::chrono::milliseconds(row.paused_at_ms)});
  pause["memory"] = memory;
  pause["not_carried"] = not_carried_json(lost);
  return pause;
}

}  // namespace

json::object sandbox_json(const store::SandboxRow& row, const Sandbox* live) {
  json::object object;
  object["id"] = row.id.view();
  object["name"] = nullptr;
  if (row.name) object["name"] = *row.name;
  bool paused = is_paused(row);
  std::string_view stored = paused ? "paused" : std::string_view(row.state);
  // One that is being brought back is paused until it is.
  bool shows_live = live && !(paused && live->state() == sandbox::State::kCreating);
  object["state"] = shows_live ? sandbox::state_name(live->state()) : stored;
  object["template"] = row.template_name;
  object["isolation"] = row.isolation;
  object["limits"] = limits_json(row);
  object["require"] = extras_json(row.required_extras);
  object["ttl_ms"] = or_null(row.ttl_ms);
  object["idle_ttl_ms"] = or_null(row.idle_ttl_ms);
  std::optional<WallTime> ends_at = live ? live->lifetime().ends_at() : std::nullopt;
  object["ends_at"] = nullptr;
  if (ends_at) object["ends_at"] = to_rfc3339(*ends_at);
  object["on_ttl"] = row.on_ttl;
  object["auto_resume"] = row.auto_resume;
  object["files_only_after_ms"] = or_null(row.files_only_after_ms);
  object["files_only_under_pressure"] = row.files_only_under_pressure;
  object["pause"] = pause_json(row, live);
  object["checkpoint"] = row.checkpoint;
  object["persistence"] = row.persistence;
  object["network"] = network_json(row.network);
  object["volumes"] = volumes_json(row);
  WallTime created{std::chrono::milliseconds(row.created_at_ms)};
  json::error_code error;
  object["metadata"] = json::parse(row.metadata, error);
  object["generation"] = row.generation;
  object["created_at"] = to_rfc3339(created);
  if (!row.failure.empty()) object["failure"] = row.failure;
  return object;
}

}  // namespace atl::api::v1
