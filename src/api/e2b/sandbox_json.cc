#include "api/e2b/sandbox_json.h"

#include <boost/json/parse.hpp>

#include "api/e2b/network_rules.h"
#include "base/clock.h"

namespace atl::api::e2b {

namespace json = boost::json;
using sandbox::Sandbox;

namespace {

// What the clients decide by which features they may use.
constexpr std::string_view kEnvdVersion = "0.6.13";
constexpr std::string_view kClient = "atoll";  // deprecated, and required by some

std::string time_text(int64_t milliseconds) {
  return to_rfc3339(WallTime{std::chrono::milliseconds(milliseconds)});
}

// One without a ttl has an end all the same: far away.
std::string end_text(const Sandbox& sandbox) {
  auto ends_at = sandbox.lifetime().ends_at();
  if (ends_at) return to_rfc3339(*ends_at);
  return time_text(sandbox.row().created_at_ms + static_cast<int64_t>(sandbox::kMaxTtlMs));
}

json::value parsed(const std::string& text) {
  json::error_code error;
  json::value value = json::parse(text, error);
  return error || !value.is_object() ? json::value(json::object()) : value;
}

}  // namespace

std::string domain_of(const Plane& plane, const http::Request& request) {
  if (!plane.domain.empty()) return std::string(plane.domain);
  std::string host(request.headers.find("Host").value_or("localhost"));
  size_t colon = host.rfind(':');
  bool has_port = colon != host.npos && !host.ends_with(']');
  std::string port = has_port ? host.substr(colon) : "";
  std::string name = host.substr(0, host.size() - port.size());
  // Beneath an address there are no names.
  bool is_address =
      name.starts_with('[') || name.find_first_not_of("0123456789.") == std::string::npos;
  return (is_address ? "localhost" : name) + port;
}

json::object handle_json(const Sandbox& sandbox, const Plane& plane, const std::string& domain) {
  json::object object;
  object["sandboxID"] = sandbox.id().string();
  object["templateID"] = sandbox.row().template_name;
  object["alias"] = sandbox.row().template_name;
  object["clientID"] = kClient;
  object["envdVersion"] = kEnvdVersion;
  object["envdAccessToken"] = plane.tokens.access_token(sandbox.id());
  object["trafficAccessToken"] = plane.tokens.traffic_token(sandbox.id());
  object["domain"] = domain;
  return object;
}

json::object listed_json(const Sandbox& sandbox) {
  constexpr uint64_t kMebibyte = 1024 * 1024;
  const store::SandboxRow& row = sandbox.row();
  json::object object;
  object["sandboxID"] = sandbox.id().string();
  object["templateID"] = row.template_name;
  object["alias"] = row.template_name;
  object["clientID"] = kClient;
  object["startedAt"] = time_text(row.created_at_ms);
  object["endAt"] = end_text(sandbox);
  object["state"] = sandbox.state() == sandbox::State::kPaused ? "paused" : "running";
  object["cpuCount"] = (row.cpu_millis + 999) / 1000;
  object["memoryMB"] = row.memory_bytes / kMebibyte;
  object["diskSizeMB"] = row.disk_bytes / kMebibyte;
  object["metadata"] = parsed(row.metadata);
  object["envdVersion"] = kEnvdVersion;
  json::array mounts;
  for (const store::VolumeUse& use : row.volumes)
    mounts.push_back(json::object{{"name", use.name}, {"path", use.path}});
  object["volumeMounts"] = std::move(mounts);
  return object;
}

json::object detail_json(const Sandbox& sandbox, const Plane& plane, const std::string& domain) {
  json::object object = listed_json(sandbox);
  object["envdAccessToken"] = plane.tokens.access_token(sandbox.id());
  object["domain"] = domain;
  object["allowInternetAccess"] = sandbox.row().network != "{}";
  object["network"] = network_json(sandbox.row().network);
  json::object lifecycle;
  lifecycle["onTimeout"] = sandbox.row().on_ttl == "pause" ? "pause" : "kill";
  lifecycle["autoResume"] = sandbox.row().auto_resume;
  object["lifecycle"] = std::move(lifecycle);
  return object;
}

}  // namespace atl::api::e2b
