#include "api/v1/template_json.h"

#include <boost/json/array.hpp>

#include "base/clock.h"
#include "base/utf8.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::KnownTemplate;
using sandbox::TemplateBuild;

namespace {

std::string_view origin_name(KnownTemplate::Origin origin) {
  switch (origin) {
    case KnownTemplate::Origin::kOwn:
      return "own";
    case KnownTemplate::Origin::kOperator:
      return "operator";
    case KnownTemplate::Origin::kInstalled:
      return "installed";
    case KnownTemplate::Origin::kBuiltIn:
      return "built_in";
  }
  return "built_in";
}

std::string_view state_of(const KnownTemplate& known, const TemplateBuild* build) {
  if (known.image) return "built";
  if (build == nullptr) return "not_built";
  return build->ended() ? "failed" : "building";
}

json::value time_of(const std::optional<int64_t>& milliseconds) {
  if (!milliseconds) return nullptr;
  return json::value(to_rfc3339(WallTime{std::chrono::milliseconds(*milliseconds)}));
}

}  // namespace

json::object template_json(const KnownTemplate& known, const TemplateBuild* build) {
  json::object object;
  object["name"] = known.name;
  object["description"] = known.manifest.description;
  object["aliases"] = json::array(known.manifest.aliases.begin(), known.manifest.aliases.end());
  object["origin"] = origin_name(known.origin);
  object["state"] = state_of(known, build);
  object["isolation"] = isolation_name(known.manifest.defaults.isolation);
  object["latency"] = latency_name(known.manifest.defaults.latency);
  object["reference"] =
      known.image ? json::value(known.name + "@sha256:" + known.image->string()) : nullptr;
  object["image_bytes"] = known.image_bytes > 0 ? json::value(known.image_bytes) : nullptr;
  object["created_at"] = time_of(known.created_at_ms);
  return object;
}

json::object build_json(const TemplateBuild& build) {
  json::object object;
  object["template"] = build.name();
  object["state"] = sandbox::state_name(build.state());
  object["step"] = build.step().number;
  object["steps"] = build.step().of;
  object["title"] = readable_utf8(build.step().title);
  object["reference"] =
      build.image() ? json::value(build.name() + "@sha256:" + build.image()->string()) : nullptr;
  object["failure"] =
      build.failure() ? json::value(readable_utf8(build.failure()->message())) : nullptr;
  return object;
}

}  // namespace atl::api::v1
