#include "api/e2b/template_tags.h"

#include <boost/json/array.hpp>

#include "api/e2b/build_definition.h"
#include "api/e2b/control_route.h"
#include "api/json_reader.h"
#include "api/json_reply.h"
#include "sandbox/template_builds.h"

namespace atl::api::e2b {

namespace json = boost::json;
using http::Method;
using sandbox::KnownTemplate;

namespace {

constexpr size_t kMaxTags = 32;
constexpr size_t kMaxTextBytes = 128;

// Clients insist on a UUID; an image is one build.
std::string build_id(const Digest& image) {
  std::string text = image.string().substr(0, 32);
  for (size_t at : {20, 16, 12, 8}) text.insert(at, "-");
  return text;
}

json::object tag_json(std::string_view tag, const Digest& image, int64_t created_at_ms) {
  json::object object;
  object["tag"] = tag;
  object["buildID"] = build_id(image);
  object["createdAt"] = to_rfc3339(WallTime{std::chrono::milliseconds(created_at_ms)});
  return object;
}

struct TagRequest {
  std::string name;
  std::vector<std::string> tags;
};

Result<TagRequest> parse_request(std::string_view body, const char* name_field) {
  ATOLL_TRY(json::object object, parse_object(body));
  ObjectReader reader(object);
  TagRequest request;
  request.name = reader.text(name_field, kMaxTextBytes);
  auto tags = reader.optional_texts("tags", kMaxTags, kMaxTextBytes);
  ATOLL_TRY_VOID(reader.settle());
  request.tags = tags.value_or(std::vector<std::string>());
  if (request.tags.empty())
    return Error(Code::kInvalid, "tags must name one at least").with_reason("invalid_field");
  ATOLL_TRY_VOID(check_tags(request.tags));
  return request;
}

http::Task<Reply> assign(Call& call, Plane plane) {
  ATOLL_CO_TRY(TagRequest request, parse_request(call.body, "target"));
  ATOLL_CO_TRY(Digest image, co_await plane.builds.tag(call.tenant, request.name, request.tags));
  json::array tags;
  for (const std::string& tag : request.tags) tags.emplace_back(tag);
  json::object object;
  object["buildID"] = build_id(image);
  object["tags"] = std::move(tags);
  co_return std::optional(json_reply(201, object));
}

http::Task<Reply> remove_tag(Call& call, Plane plane) {
  ATOLL_CO_TRY(TagRequest request, parse_request(call.body, "name"));
  for (const std::string& tag : request.tags)
    if (tag == sandbox::kDefaultTag)
      co_return Error(Code::kInvalid, "the tag default stays: give it to another build instead")
          .with_reason("invalid_field");
  ATOLL_CO_TRY_VOID(co_await plane.builds.untag(call.tenant, request.name, request.tags));
  http::Response response;
  response.status = 204;
  co_return std::optional(std::move(response));
}

http::Task<Reply> list_tags(Call& call, Plane plane) {
  const std::string& name = call.parameters.at(0);
  auto& templates = plane.sandboxes.templates();
  ATOLL_CO_TRY(std::optional<KnownTemplate> found, templates.find(call.tenant, name));
  if (!found)
    co_return Error(Code::kNotFound, "template '" + name + "' not found")
        .with_reason("template_not_found");
  json::array items;
  if (found->image)
    items.push_back(
        tag_json(sandbox::kDefaultTag, *found->image, found->created_at_ms.value_or(0)));
  if (found->origin == KnownTemplate::Origin::kOwn)
    for (const store::TemplateTag& tag : templates.tags(call.tenant, found->name))
      items.push_back(tag_json(tag.tag, tag.image, tag.created_at_ms));
  co_return std::optional(json_reply(200, items));
}

}  // namespace

void add_template_tag_routes(Router& router, Plane plane) {
  router.add(control_route(Method::kPost, "/templates/tags", plane, assign));
  router.add(control_route(Method::kDelete, "/templates/tags", plane, remove_tag));
  router.add(control_route(Method::kGet, "/templates/{template}/tags", plane, list_tags));
}

}  // namespace atl::api::e2b
