#include "api/health.h"

#include <algorithm>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "api/json_reply.h"
#include "base/log.h"

namespace atl::api {

namespace json = boost::json;

namespace {

json::object state_of(std::string_view state) {
  return {{"status", state}, {"version", ATOLL_VERSION}};
}

json::array list_of(const std::vector<Health::Check>& checks) {
  json::array list;
  for (const Health::Check& check : checks) {
    json::object one = {{"name", check.name},
                        {"status", check.trouble.empty() ? "ok" : "unwell"},
                        {"since", to_rfc3339(check.since)}};
    if (!check.trouble.empty()) one["reason"] = check.trouble;
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

void Health::report(std::string_view name, std::string_view trouble) {
  auto found = std::find_if(checks_.begin(), checks_.end(),
                            [name](const Check& check) { return check.name == name; });
  bool is_new = found == checks_.end();
  if (is_new) found = checks_.insert(found, {std::string(name), "", clock_.wall_now()});
  bool changed = found->trouble.empty() != trouble.empty();
  found->trouble = trouble;
  if (!changed) return;
  found->since = clock_.wall_now();
  if (trouble.empty())
    log_info("well again", {{"check", name}});
  else
    log_warning("unwell", {{"check", name}, {"reason", trouble}});
}

bool Health::is_well() const {
  return std::all_of(checks_.begin(), checks_.end(),
                     [](const Check& check) { return check.trouble.empty(); });
}

void add_health_routes(Router& router, const Health& health) {
  auto alive = [](Call&) -> http::Task<Reply> {
    http::Response response = json_reply(200, state_of("ok"));
    co_return std::optional(std::move(response));
  };
  auto ready = [&router, &health](Call&) -> http::Task<Reply> {
    bool well = router.ready() && health.is_well();
    json::object state = state_of(well ? "ready" : router.ready() ? "unwell" : "starting");
    state["checks"] = list_of(health.checks());
    http::Response response = json_reply(well ? 200 : 503, state);
    co_return std::optional(std::move(response));
  };
  router.add({http::Method::kGet, "/healthz", alive, Route::Access::kPublic});
  router.add({http::Method::kGet, "/readyz", ready, Route::Access::kPublic});
}

}  // namespace atl::api
