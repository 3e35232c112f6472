#include <boost/json/array.hpp>

#include "api/e2b/failure.h"
#include "api/e2b/path.h"
#include "api/e2b/sandbox_request.h"
#include "api/e2b/volumes.h"
#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/query.h"
#include "api/v1/file_content.h"
#include "api/v1/file_json.h"
#include "base/clock.h"

namespace atl::api::e2b {

namespace json = boost::json;
using agent::EntryType;
using http::Method;
using sandbox::FileEntry;
using sandbox::Files;
using sandbox::VolumeRooms;
using Purpose = sandbox::VolumeRooms::Purpose;

namespace {

constexpr uint32_t kUserId = 1000;  // whose the files are, unless the client says another
constexpr uint32_t kMaxId = 65535;
constexpr uint32_t kMaxMode = 01777;
constexpr size_t kMaxListed = 20'000;
constexpr size_t kStepBytes = 64 * 1024;

// A call on the files of one volume.
struct Errand {
  VolumeRooms::Visit visit;
  std::string path;   // in the sandbox
  Files files;        // as whom the client wants to be
  uint32_t mode = 0;  // 0: the usual one
  bool is_forced = false;
};

std::string_view type_name(EntryType type) {
  switch (type) {
    case EntryType::kFile:
      return "file";
    case EntryType::kDirectory:
      return "directory";
    case EntryType::kSymlink:
      return "symlink";
    default:
      return "unknown";
  }
}

json::object stat_json(const FileEntry& entry, const Errand& errand) {
  std::string path = entry.path.substr(std::min(entry.path.size(), errand.visit.path.size()));
  if (path.empty()) path = "/";
  std::string changed = to_rfc3339(v1::time_of(entry.modified_ns));
  json::object object;
  object["name"] = sandbox::shown(name_of(path));
  object["path"] = sandbox::shown(path);
  object["type"] = type_name(entry.type);
  object["size"] = entry.size;
  object["mode"] = entry.mode;
  object["uid"] = entry.uid;
  object["gid"] = entry.gid;
  for (const char* time : {"atime", "mtime", "ctime"}) object[time] = changed;
  if (entry.type == EntryType::kSymlink) object["target"] = sandbox::shown(entry.target);
  return object;
}

Result<uint32_t> small_parameter(std::string_view name, const http::Request& request,
                                 uint32_t usual, uint32_t most) {
  ATOLL_TRY(auto given, number_parameter(name, request));
  if (given && *given > most)
    return invalid_parameter(name, "must be at most " + std::to_string(most));
  return given ? static_cast<uint32_t>(*given) : usual;
}

std::string user_named(uint32_t id) {
  return id == 0 ? "root" : id == kUserId ? "user" : std::to_string(id);
}

http::Task<Result<Errand>> enter_volume(Call& call, Plane plane, Purpose purpose) {
  const http::Request& request = call.exchange.request();
  ATOLL_CO_TRY(auto given, text_parameter("path", request));
  ATOLL_CO_TRY(std::string path, resolve_path("/" + given.value_or(""), "root"));
  ATOLL_CO_TRY(uint32_t uid, small_parameter("uid", request, kUserId, kMaxId));
  ATOLL_CO_TRY(uint32_t gid, small_parameter("gid", request, uid, kMaxId));
  ATOLL_CO_TRY(uint32_t mode, small_parameter("mode", request, 0, kMaxMode));
  ATOLL_CO_TRY(bool is_forced, flag_parameter("force", request));
  if (gid != uid) co_return unsupported("uid and gid must be the same: leave out gid");
  auto id = VolumeId::parse(call.parameters.at(0));
  Result<sandbox::ShownVolume> volume = Error(Code::kNotFound, "");
  if (id) volume = plane.sandboxes.services().volumes->find(*id);
  if (!volume || volume->row.tenant != call.tenant)
    co_return Error(Code::kNotFound, "volume not found").with_reason("volume_not_found");
  ATOLL_CO_TRY(auto visit, co_await plane.rooms->enter(std::move(*volume), purpose));
  // Who reads sees everything, as from outside.
  Files files(visit.sandbox, purpose == Purpose::kRead ? "root" : user_named(uid));
  std::string whole = path == "/" ? visit.path : visit.path + path;
  Errand errand{std::move(visit), std::move(whole), std::move(files), mode, is_forced};
  co_return errand;
}

http::Task<Reply> stat_volume_entry(Call&, Errand& errand) {
  ATOLL_CO_TRY(FileEntry entry, co_await errand.files.stat(errand.path));
  co_return std::optional(json_reply(200, stat_json(entry, errand)));
}

http::Task<Reply> list_volume_directory(Call& call, Errand& errand) {
  sandbox::ListFiles asked;
  asked.path = errand.path;
  ATOLL_CO_TRY(asked.depth,
               small_parameter("depth", call.exchange.request(), 1, sandbox::kMaxDepth));
  asked.limit = sandbox::kMaxPageEntries;
  json::array items;
  while (true) {
    ATOLL_CO_TRY(std::vector<FileEntry> entries, co_await errand.files.list(asked));
    for (const FileEntry& entry : entries) items.push_back(stat_json(entry, errand));
    if (entries.size() < asked.limit) break;
    asked.cursor = entries.back().path;
    if (items.size() >= kMaxListed)
      co_return Error(Code::kExhausted, "the directory has more than 20000 entries")
          .with_reason("answer_too_large");
  }
  co_return std::optional(json_reply(200, items));
}

http::Task<Reply> make_directory(Call&, Errand& errand) {
  auto parents = errand.is_forced ? sandbox::Parents::kMake : sandbox::Parents::kMustExist;
  ATOLL_CO_TRY(auto made, co_await errand.files.make_directory(errand.path, errand.mode, parents));
  co_return std::optional(json_reply(201, stat_json(made.entry, errand)));
}

http::Task<Reply> change_volume_entry(Call& call, Errand& errand) {
  ATOLL_CO_TRY(json::object object, parse_object(call.body));
  ObjectReader reader(object);
  auto mode = reader.optional_small("mode", 0, kMaxMode);
  auto uid = reader.optional_small("uid", 0, kMaxId);
  auto gid = reader.optional_small("gid", 0, kMaxId);
  ATOLL_CO_TRY_VOID(reader.settle());
  Files files(errand.visit.sandbox, "root");
  ATOLL_CO_TRY(FileEntry entry, co_await files.stat(errand.path));
  if (uid.value_or(entry.uid) != entry.uid || gid.value_or(entry.gid) != entry.gid)
    co_return unsupported("the owner of a file does not change: write it anew with uid");
  if (mode) {
    ATOLL_CO_TRY(entry, co_await files.change_mode(errand.path, *mode));
  }
  co_return std::optional(json_reply(200, stat_json(entry, errand)));
}

http::Task<Reply> remove_volume_entry(Call&, Errand& errand) {
  if (errand.path == errand.visit.path)
    co_return Error(Code::kInvalid, "the root of a volume stays").with_reason("invalid_path");
  Files files(errand.visit.sandbox, "root");
  ATOLL_CO_TRY_VOID(co_await files.remove(errand.path, Files::Depth::kTree));
  http::Response response;
  response.status = 204;
  co_return std::optional(std::move(response));
}

http::Task<Reply> download(Call& call, Errand& errand) {
  v1::FileTarget target{errand.files, errand.path};
  co_return co_await v1::download_file(call, std::move(target));
}

http::Task<Reply> write_volume_file(Call& call, Errand& errand) {
  sandbox::WriteFile request;
  request.path = errand.path;
  request.mode = errand.mode;
  ATOLL_CO_TRY(auto writer, co_await errand.files.write(std::move(request)));
  std::string buffer(kStepBytes, '\0');
  std::span<char> room(buffer);
  while (true) {
    ATOLL_CO_TRY(size_t count, co_await call.exchange.read_body_some(room));
    if (count == 0) break;
    std::string_view bytes(buffer.data(), count);
    ATOLL_CO_TRY_VOID(co_await writer->write(bytes));
  }
  ATOLL_CO_TRY(auto made, co_await writer->finish());
  co_return std::optional(json_reply(201, stat_json(made.entry, errand)));
}

using Action = http::Task<Reply> (*)(Call& call, Errand& errand);

http::Task<Reply> run(Call& call, Plane plane, Purpose purpose, Action action) {
  ATOLL_CO_TRY(Errand errand, co_await enter_volume(call, plane, purpose));
  auto reply = co_await action(call, errand);
  co_await plane.rooms->leave(errand.visit);
  co_return reply;
}

std::optional<store::TenantId> bearer_of(const Plane& plane, const http::Request& request,
                                         const std::vector<std::string>& parameters) {
  constexpr std::string_view kScheme = "Bearer ";
  auto id = VolumeId::parse(parameters.at(0));
  std::string_view shown = request.headers.find("Authorization").value_or("");
  bool once = request.headers.count("Authorization") == 1 && shown.starts_with(kScheme);
  if (!id || !once) return std::nullopt;
  if (!plane.tokens.is_volume_token(shown.substr(kScheme.size()), *id)) return std::nullopt;
  auto volume = plane.sandboxes.services().volumes->find(*id);
  return volume ? volume->row.tenant : store::kLocalTenant;
}

}  // namespace

void add_volume_content_routes(Router& router, Plane plane) {
  auto make = [plane](Method method, const char* what, Action action) {
    auto purpose = method == Method::kGet ? Purpose::kRead : Purpose::kWrite;
    Route route{method, std::string("/volumecontent/{volume}/") + what,
                [plane, purpose, action](Call& call) { return run(call, plane, purpose, action); }};
    route.failure = control_failure;
    route.admit = [plane](const http::Request& request,
                          const std::vector<std::string>& parameters) {
      return bearer_of(plane, request, parameters);
    };
    return route;
  };
  router.add(make(Method::kGet, "path", stat_volume_entry));
  router.add(make(Method::kPatch, "path", change_volume_entry));
  router.add(make(Method::kDelete, "path", remove_volume_entry));
  router.add(make(Method::kGet, "dir", list_volume_directory));
  router.add(make(Method::kPost, "dir", make_directory));
  Route reading = make(Method::kGet, "file", download);
  reading.time = Route::Time::kLong;
  router.add(std::move(reading));
  Route writing = make(Method::kPut, "file", write_volume_file);
  writing.body = Route::Body::kStream;
  router.add(std::move(writing));
}

}  // namespace atl::api::e2b
