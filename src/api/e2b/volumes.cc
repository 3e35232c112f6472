#include "api/e2b/volumes.h"

#include <boost/json/array.hpp>

#include "api/e2b/control_route.h"
#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/v1/volumes.h"
#include "sandbox/file_call.h"

namespace atl::api::e2b {

namespace json = boost::json;
using http::Method;
using sandbox::ShownVolume;
using sandbox::Volumes;

namespace {

// E2B's clients do not say how much a volume may hold.
constexpr uint64_t kBytes = 1ull << 30;

json::object volume_json(const store::VolumeRow& row) {
  return {{"volumeID", row.id.view()}, {"name", row.name}};
}

json::object held_json(const store::VolumeRow& row, const Plane& plane) {
  json::object object = volume_json(row);
  object["token"] = plane.tokens.volume_token(row.id);
  return object;
}

Volumes& volumes_of(const Plane& plane) { return *plane.sandboxes.services().volumes; }

// By its id, or by its name.
Result<ShownVolume> named_volume(const Call& call, const Plane& plane) {
  const std::string& named = call.parameters.at(0);
  auto id = VolumeId::parse(named);
  auto volume = id ? volumes_of(plane).find(*id) : volumes_of(plane).find(call.tenant, named);
  if (volume && volume->row.tenant == call.tenant) return volume;
  return Error(Code::kNotFound, "volume " + sandbox::shown(named) + " not found")
      .with_reason("volume_not_found");
}

http::Task<Reply> create_volume(Call& call, Plane plane) {
  ATOLL_CO_TRY(json::object object, parse_object(call.body));
  ObjectReader reader(object);
  std::string name = reader.text("name", sandbox::kMaxVolumeNameBytes);
  if (!sandbox::is_volume_name(name)) reader.refuse("name", sandbox::kVolumeNameRule);
  ATOLL_CO_TRY_VOID(reader.settle());
  ATOLL_CO_TRY(auto row, co_await volumes_of(plane).create(call.tenant, name, kBytes));
  co_return std::optional(json_reply(201, held_json(row, plane)));
}

http::Task<Reply> list_volumes(Call& call, Plane plane) {
  json::array items;
  for (const ShownVolume& volume : volumes_of(plane).list(call.tenant))
    items.push_back(volume_json(volume.row));
  co_return std::optional(json_reply(200, items));
}

http::Task<Reply> show_volume(Call& call, Plane plane) {
  ATOLL_CO_TRY(ShownVolume volume, named_volume(call, plane));
  co_return std::optional(json_reply(200, held_json(volume.row, plane)));
}

http::Task<Reply> remove_volume(Call& call, Plane plane) {
  ATOLL_CO_TRY(ShownVolume volume, named_volume(call, plane));
  std::string name = volume.row.name;
  std::vector<sandbox::WantedVolume> wanted;
  wanted.push_back({name, ""});
  co_await plane.rooms->wait_empty(call.tenant, std::move(wanted));
  ATOLL_CO_TRY_VOID(co_await volumes_of(plane).remove(call.tenant, name));
  http::Response response;
  response.status = 204;
  co_return std::optional(std::move(response));
}

}  // namespace

Result<std::vector<sandbox::WantedVolume>> parse_volume_mounts(const json::object& object) {
  json::object volumes;
  if (const json::value* mounts = object.if_contains("volumeMounts")) volumes["volumes"] = *mounts;
  return v1::take_volumes(volumes);
}

void add_volume_routes(Router& router, Plane plane) {
  router.add(control_route(Method::kPost, "/volumes", plane, create_volume));
  router.add(control_route(Method::kGet, "/volumes", plane, list_volumes));
  router.add(control_route(Method::kGet, "/volumes/{volume}", plane, show_volume));
  router.add(control_route(Method::kDelete, "/volumes/{volume}", plane, remove_volume));
}

}  // namespace atl::api::e2b
