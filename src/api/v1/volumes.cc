#include "api/v1/volumes.h"

#include <algorithm>

#include "api/json_reader.h"
#include "api/json_reply.h"
#include "base/clock.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::Sandboxes;
using sandbox::ShownVolume;
using sandbox::Volumes;
using sandbox::WantedVolume;

namespace {

// What every sandbox has mounted, or what names them for programs.
constexpr std::string_view kReservedPaths[] = {"/dev", "/proc",      "/run",
                                               "/sys", "/opt/atoll", "/etc"};

// One is the other, or beneath it.
bool overlap(std::string_view one, std::string_view other) {
  if (one.size() > other.size()) std::swap(one, other);
  return other.starts_with(one) && (other.size() == one.size() || other[one.size()] == '/');
}

std::string_view check_path(std::string_view path) {
  if (!isolate::is_volume_path(path))
    return "must be absolute, without empty, `.` and `..` parts, of letters, digits and ._+@-";
  for (std::string_view reserved : kReservedPaths)
    if (overlap(path, reserved)) return "must leave /dev, /etc, /opt/atoll, /proc, /run and /sys";
  return "";
}

Error invalid(std::string message) {
  return Error(Code::kInvalid, std::move(message))
      .with_reason("invalid_field")
      .with_field("volumes");
}

Result<WantedVolume> parse_volume(const json::value& value) {
  const json::object* object = value.if_object();
  if (object == nullptr) return invalid("volumes must be a list of objects");
  WantedVolume wanted;
  ObjectReader reader(*object, "volumes.");
  wanted.name = reader.text("name", sandbox::kMaxVolumeNameBytes);
  wanted.path = reader.text("path", isolate::kMaxVolumePathBytes);
  if (std::string_view wrong = check_path(wanted.path); !wrong.empty())
    reader.refuse("path", std::string(wrong));
  std::string mode = reader.optional_text("mode", 2).value_or("rw");
  if (mode != "rw" && mode != "ro") reader.refuse("mode", "must be \"rw\" or \"ro\"");
  wanted.read_only = mode == "ro";
  ATOLL_TRY_VOID(reader.finish());
  return wanted;
}

json::object volume_json(const ShownVolume& volume) {
  json::object object;
  object["name"] = volume.row.name;
  object["bytes"] = volume.row.bytes;
  json::array users;
  for (const auto& [id, reads] : volume.users)
    users.push_back(json::object{{"sandbox", id.view()}, {"mode", reads ? "ro" : "rw"}});
  object["used_by"] = std::move(users);
  object["created_at"] = to_rfc3339(WallTime{std::chrono::milliseconds(volume.row.created_at_ms)});
  return object;
}

struct CreateVolume {
  std::string name;
  uint64_t bytes = 0;
};

Result<CreateVolume> parse_create(std::string_view body) {
  ATOLL_TRY(json::object object, parse_object(body));
  ObjectReader reader(object);
  CreateVolume request;
  request.name = reader.text("name", sandbox::kMaxVolumeNameBytes);
  if (!sandbox::is_volume_name(request.name)) reader.refuse("name", sandbox::kVolumeNameRule);
  auto bytes = reader.optional_integer("bytes", isolate::kMinDiskBytes, isolate::kMaxDiskBytes);
  if (!reader.has("bytes") || reader.is_null("bytes"))
    reader.refuse("bytes", "is required", "missing_field");
  request.bytes = bytes.value_or(0);
  ATOLL_TRY_VOID(reader.finish());
  return request;
}

http::Task<Reply> create_volume(Call& call, Volumes& volumes) {
  ATOLL_CO_TRY(CreateVolume request, parse_create(call.body));
  std::string name = request.name;
  ATOLL_CO_TRY(auto row, co_await volumes.create(call.tenant, name, request.bytes));
  http::Response response = json_reply(201, volume_json(ShownVolume{row}));
  response.headers.add("Location", "/v1/volumes/" + row.name);
  co_return std::optional(std::move(response));
}

http::Task<Reply> list_volumes(Call& call, Volumes& volumes) {
  json::array items;
  for (const ShownVolume& volume : volumes.list(call.tenant)) items.push_back(volume_json(volume));
  json::object object;
  object["volumes"] = std::move(items);
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> show_volume(Call& call, Volumes& volumes) {
  ATOLL_CO_TRY(ShownVolume volume, volumes.find(call.tenant, call.parameters.at(0)));
  co_return std::optional(json_reply(200, volume_json(volume)));
}

http::Task<Reply> remove_volume(Call& call, Volumes& volumes) {
  std::string name = call.parameters.at(0);
  ATOLL_CO_TRY_VOID(co_await volumes.remove(call.tenant, name));
  http::Response response;
  response.status = 204;
  co_return std::optional(std::move(response));
}

}  // namespace

Result<std::vector<WantedVolume>> take_volumes(json::object& object) {
  std::vector<WantedVolume> wanted;
  json::value value = object["volumes"];
  object.erase("volumes");
  if (value.is_null()) return wanted;
  const json::array* items = value.if_array();
  if (items == nullptr || items->size() > isolate::kMaxVolumes)
    return invalid("volumes must be a list of at most 8");
  for (const json::value& item : *items) {
    ATOLL_TRY(WantedVolume one, parse_volume(item));
    for (const WantedVolume& other : wanted)
      if (one.name == other.name || overlap(one.path, other.path))
        return invalid("volumes must differ in their names, and none lie in another");
    wanted.push_back(std::move(one));
  }
  return wanted;
}

json::array volumes_json(const store::SandboxRow& row) {
  json::array items;
  for (const store::VolumeUse& use : row.volumes)
    items.push_back(json::object{
        {"name", use.name}, {"path", use.path}, {"mode", use.read_only ? "ro" : "rw"}});
  return items;
}

void add_volume_routes(Router& router, Sandboxes& sandboxes) {
  using http::Method;
  Volumes& volumes = *sandboxes.services().volumes;
  auto bind = [&volumes](auto action) {
    return [&volumes, action](Call& call) { return action(call, volumes); };
  };
  router.add({.method = Method::kPost,
              .pattern = "/v1/volumes",
              .action = bind(create_volume),
              .effect = Route::Effect::kCreates});
  router.add({Method::kGet, "/v1/volumes", bind(list_volumes)});
  router.add({Method::kGet, "/v1/volumes/{name}", bind(show_volume)});
  router.add({Method::kDelete, "/v1/volumes/{name}", bind(remove_volume)});
}

}  // namespace atl::api::v1
