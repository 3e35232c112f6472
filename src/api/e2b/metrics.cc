#include "api/e2b/metrics.h"

#include <cmath>

#include <boost/json/array.hpp>

#include "api/e2b/control_route.h"
#include "api/json_reply.h"
#include "api/query.h"
#include "base/clock.h"

namespace atl::api::e2b {

namespace json = boost::json;
using sandbox::MeterPoint;
using sandbox::Sandbox;

namespace {

constexpr size_t kMaxIds = 100;  // of one question

uint64_t unix_seconds(const MeterPoint& point) {
  return static_cast<uint64_t>(to_milliseconds(point.at)) / 1000;
}

json::object point_json(const Sandbox& sandbox, const MeterPoint& point) {
  const store::SandboxRow& row = sandbox.row();
  json::object object;
  object["timestamp"] = to_rfc3339(point.at);
  object["timestampUnix"] = unix_seconds(point);
  object["cpuCount"] = (row.cpu_millis + 999) / 1000;
  object["cpuUsedPct"] = std::round(point.cpu_percent * 100) / 100;
  object["memUsed"] = point.memory_bytes;
  object["memTotal"] = row.memory_bytes;
  object["memCache"] = point.cache_bytes;
  object["diskUsed"] = point.disk_bytes;
  object["diskTotal"] = row.disk_bytes;
  return object;
}

http::Task<Reply> show_metrics(Call& call, Plane plane) {
  const http::Request& request = call.exchange.request();
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, plane));
  ATOLL_CO_TRY(auto start, number_parameter("start", request));
  ATOLL_CO_TRY(auto end, number_parameter("end", request));
  ATOLL_CO_TRY(auto points, co_await plane.meters.read(sandbox));
  json::array items;
  for (const MeterPoint& point : points) {
    uint64_t at = unix_seconds(point);
    if (at >= start.value_or(0) && at <= end.value_or(UINT64_MAX))
      items.push_back(point_json(*sandbox, point));
  }
  co_return std::optional(json_reply(200, items));
}

Result<std::vector<SandboxId>> parse_ids(const http::Request& request) {
  ATOLL_TRY(auto text, text_parameter("sandbox_ids", request));
  std::vector<SandboxId> ids;
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    auto id = parse_sandbox_id(rest.substr(0, comma));
    if (!id || ids.size() == kMaxIds)
      return invalid_parameter("sandbox_ids", "must be at most 100 ids with commas between them");
    ids.push_back(*id);
    rest.remove_prefix(std::min(comma, rest.size() - 1) + 1);
  }
  return ids;
}

// The newest point of each; those that are away are left out.
http::Task<Reply> show_several(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::vector<SandboxId> ids, parse_ids(call.exchange.request()));
  json::object found;
  for (const SandboxId& id : ids) {
    auto sandbox = plane.sandboxes.find(call.tenant, id);
    if (!sandbox || is_away(*sandbox)) continue;
    auto points = co_await plane.meters.read(sandbox);
    if (points && !points->empty()) found[id.string()] = point_json(*sandbox, points->back());
  }
  json::object object;
  object["sandboxes"] = std::move(found);
  co_return std::optional(json_reply(200, object));
}

}  // namespace

void add_metrics_routes(Router& router, Plane plane) {
  router.add(control_route(http::Method::kGet, "/sandboxes/metrics", plane, show_several));
  router.add(control_route(http::Method::kGet, "/sandboxes/{id}/metrics", plane, show_metrics));
}

}  // namespace atl::api::e2b
