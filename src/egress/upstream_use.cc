#include "egress/upstream_use.h"

#include "egress/request_stream.h"
#include "egress/secret_use.h"
#include "egress/upstream.h"

namespace atl::egress {

namespace json = boost::json;

namespace {

Error invalid_upstream(const std::string& field, const std::string& why) {
  return Error(Code::kInvalid, field + " " + why)
      .with_reason("invalid_network_rule")
      .with_field(field);
}

}  // namespace

Result<UpstreamUse> make_upstream_use(std::string_view proxy, std::string credentials) {
  if (!credentials.empty() && !is_secret_name(credentials))
    return invalid_upstream("network.upstream.credentials", "is not the name of a secret");
  auto authority = parse_authority(proxy);
  if (!authority || !authority->port)
    return invalid_upstream("network.upstream.proxy", "must be name:port");
  if (!credentials.empty() && !std::holds_alternative<HostName>(authority->to))
    return invalid_upstream("network.upstream.proxy", "must be a name: secrets are bound to names");
  return UpstreamUse{authority->to, *authority->port, std::move(credentials)};
}

Result<std::optional<UpstreamUse>> read_upstream_use(const json::object& policy) {
  const json::value* value = policy.if_contains("upstream");
  if (value == nullptr) return std::optional<UpstreamUse>();
  const json::object* object = value->if_object();
  if (object == nullptr)
    return invalid_upstream("network.upstream", "must be an object with proxy");
  std::string proxy, credentials;
  for (const auto& [key, entry] : *object) {
    std::string field = "network.upstream." + std::string(key);
    if (key != "proxy" && key != "credentials")
      return invalid_upstream(field, "is unknown").with_reason("unknown_field");
    if (!entry.is_string()) return invalid_upstream(field, "must be a text");
    (key == "proxy" ? proxy : credentials) = std::string_view(entry.get_string());
  }
  ATOLL_TRY(UpstreamUse use, make_upstream_use(proxy, std::move(credentials)));
  return std::optional(std::move(use));
}

json::object upstream_use_json(const UpstreamUse& use) {
  json::object object;
  object["proxy"] = authority_text(use.proxy, use.port);
  if (!use.credentials.empty()) object["credentials"] = use.credentials;
  return object;
}

}  // namespace atl::egress
