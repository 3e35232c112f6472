#include "api/e2b/filesystem.h"

#include <boost/json/array.hpp>

#include "api/e2b/entry_json.h"
#include "api/e2b/path.h"
#include "api/e2b/rpc.h"
#include "api/json_reader.h"
#include "api/json_reply.h"

namespace atl::api::e2b {

namespace json = boost::json;
using sandbox::FileEntry;
using sandbox::Files;
using sandbox::Sandbox;

namespace {

constexpr size_t kMaxListed = 20'000;  // entries of one answer

// The path in a field of the message, as the user means it.
Result<std::string> path_of(const Call& call, std::string_view field, const std::string& user) {
  ATOLL_TRY(json::object message, parse_object(call.body));
  ObjectReader reader(message);
  std::string path = reader.optional_text(field, agent::kMaxPathBytes).value_or("");
  ATOLL_TRY_VOID(reader.settle());
  return resolve_path(path, user);
}

std::optional<http::Response> entry_reply(json::object entry) {
  json::object object;
  object["entry"] = std::move(entry);
  return json_reply(200, object);
}

http::Task<Reply> stat_entry(Call& call, Plane plane) {
  ATOLL_CO_TRY(FileScope scope, file_scope(call, plane));
  ATOLL_CO_TRY(std::string path, path_of(call, "path", scope.user));
  ATOLL_CO_TRY(FileEntry entry, co_await scope.files.stat(path));
  ATOLL_CO_TRY(json::object object, co_await resolved_json(scope.files, std::move(entry)));
  co_return entry_reply(std::move(object));
}

http::Task<Reply> make_directory(Call& call, Plane plane) {
  ATOLL_CO_TRY(FileScope scope, file_scope(call, plane));
  ATOLL_CO_TRY(std::string path, path_of(call, "path", scope.user));
  auto made = co_await scope.files.make_directory(path, 0, sandbox::Parents::kMake);
  if (!made && made.error().reason() == "exists")
    co_return Error(Code::kInvalid, "path '" + path + "' exists and is not a directory")
        .with_reason("not_directory");
  if (!made) co_return std::move(made).error();
  if (made->existed)
    co_return Error(Code::kConflict, "directory '" + path + "' exists").with_reason("exists");
  co_return entry_reply(entry_json(made->entry));
}

http::Task<Reply> move_entry(Call& call, Plane plane) {
  ATOLL_CO_TRY(FileScope scope, file_scope(call, plane));
  ATOLL_CO_TRY(std::string from, path_of(call, "source", scope.user));
  ATOLL_CO_TRY(std::string to, path_of(call, "destination", scope.user));
  // Nothing is made for a source that is not there.
  ATOLL_CO_TRY_VOID(co_await scope.files.stat(from));
  std::string parent(parent_of(to));
  if (parent != "/")
    ATOLL_CO_TRY_VOID(co_await scope.files.make_directory(parent, 0, sandbox::Parents::kMake));
  ATOLL_CO_TRY(sandbox::MadeEntry made,
               co_await scope.files.move(from, to, sandbox::IfExists::kReplace));
  ATOLL_CO_TRY(json::object object, co_await resolved_json(scope.files, std::move(made.entry)));
  co_return entry_reply(std::move(object));
}

http::Task<Reply> remove_entry(Call& call, Plane plane) {
  ATOLL_CO_TRY(FileScope scope, file_scope(call, plane));
  ATOLL_CO_TRY(std::string path, path_of(call, "path", scope.user));
  auto removed = co_await scope.files.remove(path, Files::Depth::kTree);
  if (!removed && removed.error().reason() != "file_not_found")
    co_return std::move(removed).error();
  co_return std::optional(json_reply(200, json::object()));
}

Result<uint32_t> parse_depth(const Call& call) {
  ATOLL_TRY(json::object message, parse_object(call.body));
  ObjectReader reader(message);
  uint32_t depth = reader.optional_small("depth", 0, sandbox::kMaxDepth).value_or(0);
  ATOLL_TRY_VOID(reader.settle());
  return depth == 0 ? 1 : depth;
}

http::Task<Reply> list_directory(Call& call, Plane plane) {
  ATOLL_CO_TRY(FileScope scope, file_scope(call, plane));
  sandbox::ListFiles asked;
  ATOLL_CO_TRY(asked.path, path_of(call, "path", scope.user));
  ATOLL_CO_TRY(asked.depth, parse_depth(call));
  asked.limit = sandbox::kMaxPageEntries;
  json::array items;
  while (true) {
    ATOLL_CO_TRY(std::vector<FileEntry> entries, co_await scope.files.list(asked));
    size_t count = entries.size();
    if (count > 0) asked.cursor = entries.back().path;
    for (FileEntry& entry : entries) {
      ATOLL_CO_TRY(json::object object, co_await resolved_json(scope.files, std::move(entry)));
      items.push_back(std::move(object));
    }
    if (count < asked.limit) break;
    if (items.size() >= kMaxListed)
      co_return Error(Code::kExhausted, "the directory has more than 20000 entries")
          .with_reason("answer_too_large");
  }
  json::object object;
  object["entries"] = std::move(items);
  co_return std::optional(json_reply(200, object));
}

}  // namespace

Result<FileScope> file_scope(const Call& call, const Plane& plane) {
  ATOLL_TRY(std::shared_ptr<Sandbox> sandbox, running_sandbox(call, plane));
  ATOLL_TRY(std::string user, user_of(call.exchange.request(), *sandbox));
  return FileScope{Files(std::move(sandbox), user), user};
}

void add_filesystem_routes(Router& router, Plane plane) {
  add_unary(router, plane, "filesystem.Filesystem/Stat", stat_entry);
  add_unary(router, plane, "filesystem.Filesystem/MakeDir", make_directory);
  add_unary(router, plane, "filesystem.Filesystem/Move", move_entry);
  add_unary(router, plane, "filesystem.Filesystem/ListDir", list_directory);
  add_unary(router, plane, "filesystem.Filesystem/Remove", remove_entry);
}

}  // namespace atl::api::e2b
