#include "api/v1/file_watch.h"

#include <boost/json/serialize.hpp>

#include "api/query.h"
#include "api/v1/file_json.h"

namespace atl::api::v1 {

namespace json = boost::json;

namespace {

std::string_view event_name(agent::ChangeKind kind) {
  switch (kind) {
    case agent::ChangeKind::kCreated:
      return "created";
    case agent::ChangeKind::kWritten:
      return "written";
    case agent::ChangeKind::kRemoved:
      return "removed";
    case agent::ChangeKind::kMoved:
      return "moved";
    case agent::ChangeKind::kAttributes:
      return "changed";
    case agent::ChangeKind::kOverflow:
      return "overflow";
  }
  return "overflow";
}

http::Task<Result<void>> send_event(Call& call, std::string name, const json::object& data) {
  http::ServerSentEvent event{"", std::move(name), json::serialize(data)};
  std::string text = http::format_event(event);
  co_return co_await call.exchange.write(text);
}

json::object change_json(const agent::FileChange& change) {
  json::object object;
  if (change.kind == agent::ChangeKind::kOverflow) return object;
  put_bytes(object, "path", change.path);
  object["type"] = entry_type_name(change.type);
  if (change.kind == agent::ChangeKind::kMoved) put_bytes(object, "to", change.target);
  return object;
}

// The next change, or an error when the client went away meanwhile.
http::Task<Result<std::optional<agent::FileRecord>>> next_change(Call& call,
                                                                 sandbox::FileCall& changes) {
  auto watch = call.exchange.watch_peer();
  if (watch.gone()) co_return Error(Code::kCancelled, "the client has gone");
  SteadyTime never = SteadyTime::max();
  co_return co_await changes.next(never);
}

http::Task<Result<void>> send_changes(Call& call, sandbox::FileCall& changes) {
  json::object nothing;
  ATOLL_CO_TRY_VOID(co_await send_event(call, "ready", nothing));
  while (true) {
    ATOLL_CO_TRY(auto record, co_await next_change(call, changes));
    if (!record) co_return co_await call.exchange.finish();
    auto change = agent::decode_change(record->payload);
    if (record->type != agent::RecordType::kChange || !change)
      co_return sandbox::bad_answer("has something other than changes");
    std::string name(event_name(change->kind));
    json::object data = change_json(*change);
    ATOLL_CO_TRY_VOID(co_await send_event(call, std::move(name), data));
  }
}

}  // namespace

http::Task<Reply> watch_files(Call& call, FileTarget target) {
  ATOLL_CO_TRY(bool recursive, flag_parameter("recursive", call.exchange.request()));
  auto depth = recursive ? sandbox::Files::Depth::kTree : sandbox::Files::Depth::kOne;
  ATOLL_CO_TRY(std::unique_ptr<sandbox::FileCall> changes,
               co_await target.files.watch(target.path, depth));
  http::Headers headers{{"X-Request-Id", call.request_id}};
  Result<void> sent = co_await http::start_events(call.exchange, std::move(headers));
  bool is_head = call.exchange.request().method == http::Method::kHead;
  if (sent && is_head) sent = co_await call.exchange.finish();
  if (sent && !is_head) sent = co_await send_changes(call, *changes);
  co_return std::optional<http::Response>();
}

}  // namespace atl::api::v1
