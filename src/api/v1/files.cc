#include "api/v1/files.h"

#include <algorithm>

#include "api/base64.h"
#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/query.h"
#include "api/v1/file_content.h"
#include "api/v1/file_json.h"
#include "api/v1/file_request.h"
#include "api/v1/file_watch.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::Files;
using sandbox::Sandboxes;

namespace {

// A path as a cursor: any bytes, in letters that a query keeps.
std::string to_cursor(std::string_view path) {
  std::string text = to_base64(path);
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

std::optional<std::string> from_cursor(std::string text) {
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  return from_base64(text);
}

Result<uint32_t> depth_parameter(const http::Request& request, uint32_t usual) {
  ATOLL_TRY(auto depth, number_parameter("depth", request));
  if (depth && (*depth < 1 || *depth > sandbox::kMaxDepth))
    return invalid_parameter("depth", "must be from 1 to 64");
  return depth ? static_cast<uint32_t>(*depth) : usual;
}

Result<uint32_t> limit_parameter(const http::Request& request) {
  auto limit = page_limit(request.query);
  if (!limit) return invalid_parameter("limit", "must be a whole number from 1 to 1000");
  return static_cast<uint32_t>(*limit);
}

Result<std::string> short_parameter(const http::Request& request, std::string_view name,
                                    size_t most_bytes) {
  if (!has_word(request.query, name)) return std::string();
  auto text = http::query_parameter(request.query, name);
  if (!text || text->empty() || text->size() > most_bytes)
    return invalid_parameter(name, "is empty, too long, given twice or malformed");
  return *text;
}

http::Task<Reply> stat_file(Call&, FileTarget target) {
  ATOLL_CO_TRY(agent::FileEntry entry, co_await target.files.stat(target.path));
  co_return std::optional(json_reply(200, entry_json(entry, Attributes::kShow)));
}

http::Task<Reply> list_files(Call& call, FileTarget target) {
  const http::Request& request = call.exchange.request();
  sandbox::ListFiles asked;
  asked.path = target.path;
  ATOLL_CO_TRY(asked.limit, limit_parameter(request));
  ATOLL_CO_TRY(asked.depth, depth_parameter(request, 1));
  if (has_word(request.query, "cursor")) {
    auto cursor = from_cursor(http::query_parameter(request.query, "cursor").value_or("!"));
    if (!cursor || !sandbox::is_beneath(target.path, *cursor))
      co_return invalid_parameter("cursor", "is not one that this API gave out");
    asked.cursor = *cursor;
  }
  ATOLL_CO_TRY(auto entries, co_await target.files.list(asked));
  json::array items;
  for (const agent::FileEntry& entry : entries) items.push_back(entry_json(entry));
  json::object object;
  object["entries"] = std::move(items);
  object["next_cursor"] = nullptr;
  if (entries.size() == asked.limit) object["next_cursor"] = to_cursor(entries.back().path);
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> find(Call& call, FileTarget target) {
  const http::Request& request = call.exchange.request();
  sandbox::FindFiles asked;
  asked.path = target.path;
  ATOLL_CO_TRY(asked.limit, limit_parameter(request));
  ATOLL_CO_TRY(asked.depth, depth_parameter(request, sandbox::kMaxDepth));
  ATOLL_CO_TRY(asked.name, short_parameter(request, "name", agent::kMaxPathBytes));
  ATOLL_CO_TRY(asked.text, short_parameter(request, "content", agent::kMaxFindTextBytes));
  ATOLL_CO_TRY(sandbox::FoundFiles found, co_await target.files.find(asked));
  json::array items;
  for (const agent::FileMatch& match : found.matches) {
    json::object item = entry_json(match.entry);
    if (match.line > 0) item["line"] = match.line;
    if (match.line > 0) put_bytes(item, "text", match.text);
    items.push_back(std::move(item));
  }
  json::object object;
  object["matches"] = std::move(items);
  object["truncated"] = found.truncated;
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> get(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(FileTarget target, file_target(call, sandboxes));
  struct {
    std::string_view word;
    http::Task<Reply> (*action)(Call&, FileTarget);
  } constexpr kViews[] = {
      {"stat", stat_file}, {"list", list_files}, {"find", find}, {"watch", watch_files}};
  for (const auto& view : kViews)
    if (has_word(call.exchange.request().query, view.word))
      co_return co_await view.action(call, std::move(target));
  co_return co_await download_file(call, std::move(target));
}

http::Task<Reply> remove_file(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(FileTarget target, file_target(call, sandboxes));
  ATOLL_CO_TRY(bool recursive, flag_parameter("recursive", call.exchange.request()));
  auto depth = recursive ? Files::Depth::kTree : Files::Depth::kOne;
  ATOLL_CO_TRY_VOID(co_await target.files.remove(target.path, depth));
  http::Response response;
  response.status = 204;
  co_return std::optional(std::move(response));
}

http::Task<Reply> make_directory(Call& call, FileTarget target) {
  const http::Request& request = call.exchange.request();
  ATOLL_CO_TRY(uint32_t mode, mode_parameter(request));
  ATOLL_CO_TRY(bool parents, flag_parameter("parents", request));
  auto choice = parents ? sandbox::Parents::kMake : sandbox::Parents::kMustExist;
  ATOLL_CO_TRY(sandbox::MadeEntry made,
               co_await target.files.make_directory(target.path, mode, choice));
  co_return std::optional(json_reply(made.existed ? 200 : 201, entry_json(made.entry)));
}

http::Task<Reply> move_file(Call& call, FileTarget target) {
  ATOLL_CO_TRY(json::object object, parse_object(call.body));
  ObjectReader reader(object);
  std::string to = reader.text("to", agent::kMaxPathBytes);
  bool replace = reader.optional_boolean("replace").value_or(false);
  ATOLL_CO_TRY_VOID(reader.finish());
  auto cleaned = clean_path(std::move(to));
  if (!cleaned) co_return std::move(cleaned).error().with_field("to");
  auto if_exists = replace ? sandbox::IfExists::kReplace : sandbox::IfExists::kFail;
  ATOLL_CO_TRY(sandbox::MadeEntry made,
               co_await target.files.move(target.path, *cleaned, if_exists));
  co_return std::optional(json_reply(200, entry_json(made.entry)));
}

http::Task<Reply> change_mode(Call& call, FileTarget target) {
  ATOLL_CO_TRY(json::object object, parse_object(call.body));
  ObjectReader reader(object);
  std::string text = reader.text("mode", 8);
  ATOLL_CO_TRY_VOID(reader.finish());
  ATOLL_CO_TRY(uint32_t mode, parse_mode("mode", text));
  ATOLL_CO_TRY(agent::FileEntry entry, co_await target.files.change_mode(target.path, mode));
  co_return std::optional(json_reply(200, entry_json(entry, Attributes::kShow)));
}

http::Task<Reply> change_attributes(Call& call, FileTarget target) {
  ATOLL_CO_TRY(json::object object, parse_object(call.body));
  ObjectReader reader(object);
  std::vector<agent::FileAttribute> attributes;
  for (auto& [name, value] :
       reader.text_pairs("set", agent::kMaxAttributes, agent::kMaxSetAttributeBytes))
    attributes.push_back({name, value});
  auto removed =
      reader.optional_texts("remove", agent::kMaxAttributes, agent::kMaxAttributeNameBytes);
  for (const std::string& name : removed.value_or(std::vector<std::string>()))
    attributes.push_back({name, std::nullopt});
  if (attributes.size() > agent::kMaxAttributes) reader.refuse("remove", "names too many");
  for (const agent::FileAttribute& attribute : attributes)
    if (!attribute.name.starts_with("user.") || attribute.name.size() == 5 ||
        attribute.name.size() > agent::kMaxAttributeNameBytes)
      reader.refuse(attribute.value ? "set" : "remove", "may name attributes \"user.…\" only");
  ATOLL_CO_TRY_VOID(reader.finish());
  ATOLL_CO_TRY(agent::FileEntry entry,
               co_await target.files.change_attributes(target.path, std::move(attributes)));
  co_return std::optional(json_reply(200, entry_json(entry, Attributes::kShow)));
}

http::Task<Reply> post(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(FileTarget target, file_target(call, sandboxes));
  struct {
    std::string_view word;
    http::Task<Reply> (*action)(Call&, FileTarget);
  } constexpr kActions[] = {{"mkdir", make_directory},
                            {"move", move_file},
                            {"chmod", change_mode},
                            {"xattrs", change_attributes}};
  http::Task<Reply> (*wanted)(Call&, FileTarget) = nullptr;
  for (const auto& action : kActions) {
    if (!has_word(call.exchange.request().query, action.word)) continue;
    if (wanted)
      co_return Error(Code::kInvalid, "only one of ?mkdir, ?move, ?chmod and ?xattrs at a time")
          .with_reason("invalid_file_request");
    wanted = action.action;
  }
  if (!wanted)
    co_return Error(Code::kInvalid, "say what to do: ?mkdir, ?move, ?chmod or ?xattrs")
        .with_reason("missing_field");
  co_return co_await wanted(call, std::move(target));
}

}  // namespace

void add_file_routes(Router& router, Sandboxes& sandboxes) {
  using http::Method;
  auto bind = [&sandboxes](auto action) {
    return [&sandboxes, action](Call& call) { return action(call, sandboxes); };
  };
  const std::string base = "/v1/sandboxes/{id}/files/{path...}";
  Route upload{Method::kPut, base, bind(upload_file)};
  upload.body = Route::Body::kStream;
  router.add(
      {.method = Method::kGet, .pattern = base, .action = bind(get), .time = Route::Time::kLong});
  router.add(std::move(upload));
  router.add({Method::kDelete, base, bind(remove_file)});
  router.add({Method::kPost, base, bind(post)});
}

}  // namespace atl::api::v1
