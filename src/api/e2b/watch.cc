#include "api/e2b/watch.h"

#include <boost/json/array.hpp>

#include "api/e2b/entry_json.h"
#include "api/e2b/filesystem.h"
#include "api/e2b/path.h"
#include "api/e2b/rpc.h"
#include "api/json_reader.h"
#include "api/json_reply.h"
#include "base/ids.h"

namespace atl::api::e2b {

namespace json = boost::json;
using agent::ChangeKind;
using agent::FileChange;
using sandbox::FileCall;
using sandbox::Sandbox;

namespace {

constexpr size_t kMaxWatchers = 32;        // of one sandbox
constexpr size_t kMaxEventsAtOnce = 1000;  // of one fetch
constexpr size_t kWatcherIdLength = 20;
// Under such a name a file is written that takes its place when it is whole.
constexpr std::string_view kDraftMark = ".atoll-";

Error changes_lost() {
  return Error(Code::kExhausted, "there were more changes than could be told; some are lost")
      .with_reason("answer_too_large");
}

struct WatchRequest {
  std::string path;
  bool recursive = false;
  bool with_entry = false;
};

Result<WatchRequest> parse_watch(const json::object& message, const std::string& user) {
  ObjectReader reader(message);
  WatchRequest request;
  std::string path = reader.optional_text("path", agent::kMaxPathBytes).value_or("");
  request.recursive = reader.optional_boolean("recursive").value_or(false);
  request.with_entry = reader.optional_boolean("includeEntry").value_or(false);
  ATOLL_TRY_VOID(reader.settle());
  ATOLL_TRY(request.path, resolve_path(path, user));
  return request;
}

http::Task<Result<std::unique_ptr<FileCall>>> open_watch(FileScope& scope,
                                                         const WatchRequest& request) {
  // A file can be watched too, but not by these clients.
  sandbox::ListFiles one{.path = request.path, .cursor = {}, .depth = 1, .limit = 1};
  ATOLL_CO_TRY_VOID(co_await scope.files.list(one));
  using Depth = sandbox::Files::Depth;
  Depth depth = request.recursive ? Depth::kTree : Depth::kOne;
  co_return co_await scope.files.watch(request.path, depth);
}

bool is_draft(std::string_view path) { return name_of(path).starts_with(kDraftMark); }

json::object event_json(std::string_view type, std::string_view root, std::string_view path) {
  std::string_view name = path == root ? "." : path.substr(root == "/" ? 1 : root.size() + 1);
  json::object event;
  event["name"] = sandbox::shown(name);
  event["type"] = type;
  return event;
}

struct Told {
  json::object event;
  std::string path;  // whose entry goes with it; empty: none
};

// What a change is to these clients: a move is the end of one name and the beginning of another.
std::vector<Told> told_of(const FileChange& change, std::string_view root) {
  std::vector<Told> told;
  auto tell = [&](std::string_view type, const std::string& path, bool has_entry) {
    told.push_back({event_json(type, root, path), has_entry ? path : ""});
  };
  if (change.kind == ChangeKind::kMoved && is_draft(change.path)) {
    tell("EVENT_TYPE_WRITE", change.target, true);
    return told;
  }
  if (is_draft(change.path)) return told;
  switch (change.kind) {
    case ChangeKind::kCreated:
      tell("EVENT_TYPE_CREATE", change.path, true);
      break;
    case ChangeKind::kWritten:
      tell("EVENT_TYPE_WRITE", change.path, true);
      break;
    case ChangeKind::kRemoved:
      tell("EVENT_TYPE_REMOVE", change.path, false);
      break;
    case ChangeKind::kMoved:
      tell("EVENT_TYPE_RENAME", change.path, false);
      tell("EVENT_TYPE_CREATE", change.target, true);
      break;
    case ChangeKind::kAttributes:
      tell("EVENT_TYPE_CHMOD", change.path, true);
      break;
    case ChangeKind::kOverflow:
      break;
  }
  return told;
}

// The next change, kTimeout if there is none by then, nothing when the directory has gone.
http::Task<Result<std::optional<FileChange>>> next_change(FileCall& changes, SteadyTime deadline) {
  ATOLL_CO_TRY(auto record, co_await changes.next(deadline));
  if (!record) co_return std::optional<FileChange>();
  auto change = agent::decode_change(record->payload);
  if (record->type != agent::RecordType::kChange || !change)
    co_return sandbox::bad_answer("has something other than changes");
  if (change->kind == ChangeKind::kOverflow) co_return changes_lost();
  co_return std::optional(std::move(*change));
}

http::Task<Result<std::optional<FileChange>>> await_change(Call& call, FileCall& changes,
                                                           SteadyTime deadline) {
  auto watch = call.exchange.watch_peer();
  if (watch.gone()) co_return Error(Code::kCancelled, "the client has gone");
  auto change = co_await next_change(changes, deadline);
  if (watch.gone()) co_return Error(Code::kCancelled, "the client has gone");
  co_return change;
}

json::object stream_message(std::string_view name, json::object inner) {
  json::object message;
  message[name] = std::move(inner);
  return message;
}

http::Task<Result<void>> send_change(RpcStream& out, FileScope& scope, const FileChange& change,
                                     const WatchRequest& request) {
  std::vector<Told> all = told_of(change, request.path);
  for (Told& told : all) {
    if (request.with_entry && !told.path.empty()) {
      auto entry = co_await scope.files.stat(told.path);
      if (entry) told.event["entry"] = entry_json(*entry);
    }
    json::object message = stream_message("filesystem", std::move(told.event));
    ATOLL_CO_TRY_VOID(co_await out.send(message));
  }
  co_return Result<void>();
}

// Until the directory or the sandbox or the client has gone, or the time is up.
http::Task<Result<void>> send_changes(Call& call, FileScope& scope, FileCall& changes,
                                      const WatchRequest& request, const Sandbox& sandbox) {
  RpcStream out(call);
  Patience patience = patience_of(call.exchange.request());
  json::object start = stream_message("start", {});
  ATOLL_CO_TRY_VOID(co_await out.start(start));
  while (true) {
    SteadyTime until = std::chrono::steady_clock::now() + patience.keepalive;
    until = std::min(until, patience.deadline);
    auto change = co_await await_change(call, changes, until);
    if (change && !*change) co_return co_await out.finish();
    if (change) {
      ATOLL_CO_TRY_VOID(co_await send_change(out, scope, **change, request));
      continue;
    }
    const Error& error = change.error();
    bool silent = error.code() == Code::kTimeout;
    if (silent && std::chrono::steady_clock::now() < patience.deadline) {
      json::object keepalive = stream_message("keepalive", {});
      ATOLL_CO_TRY_VOID(co_await out.send(keepalive));
      continue;
    }
    // The client learns by the cut that the sandbox has gone.
    bool gone = error.code() == Code::kCancelled || is_over(sandbox);
    if (gone) co_return std::move(change).error();
    co_return co_await out.fail(error);
  }
}

http::Task<Reply> watch_directory(Call& call, Plane plane) {
  ATOLL_CO_TRY(FileScope scope, file_scope(call, plane));
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, running_sandbox(call, plane));
  ATOLL_CO_TRY(json::object message, co_await read_message(call));
  ATOLL_CO_TRY(WatchRequest request, parse_watch(message, scope.user));
  ATOLL_CO_TRY(std::unique_ptr<FileCall> changes, co_await open_watch(scope, request));
  Result<void> sent = co_await send_changes(call, scope, *changes, request, *sandbox);
  co_return std::optional<http::Response>();
}

http::Task<Reply> create_watcher(Call& call, Plane plane, Watchers& watchers) {
  ATOLL_CO_TRY(FileScope scope, file_scope(call, plane));
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, running_sandbox(call, plane));
  ATOLL_CO_TRY(json::object message, parse_object(call.body));
  ATOLL_CO_TRY(WatchRequest request, parse_watch(message, scope.user));
  ATOLL_CO_TRY(std::unique_ptr<FileCall> changes, co_await open_watch(scope, request));
  ATOLL_CO_TRY(std::string id, watchers.add({sandbox, std::move(changes), request.path}));
  json::object object;
  object["watcherId"] = id;
  co_return std::optional(json_reply(200, object));
}

struct NamedWatcher {
  std::string id;
  std::shared_ptr<Watchers::Watcher> watcher;
};

Result<NamedWatcher> named_watcher(const Call& call, const Plane& plane, const Watchers& watchers) {
  ATOLL_TRY(std::shared_ptr<Sandbox> sandbox, running_sandbox(call, plane));
  ATOLL_TRY(json::object message, parse_object(call.body));
  ObjectReader reader(message);
  std::string id = reader.optional_text("watcherId", 2 * kWatcherIdLength).value_or("");
  ATOLL_TRY_VOID(reader.settle());
  auto watcher = watchers.find(*sandbox, id);
  if (!watcher)
    return Error(Code::kNotFound, "watcher with id " + sandbox::shown(id) + " not found")
        .with_reason("file_not_found");
  return NamedWatcher{std::move(id), std::move(watcher)};
}

http::Task<Result<json::array>> fetch_events(Watchers::Watcher& watcher) {
  json::array events;
  while (events.size() < kMaxEventsAtOnce) {
    SteadyTime now = std::chrono::steady_clock::now();
    auto change = co_await next_change(*watcher.changes, now);
    if (!change && change.error().code() == Code::kTimeout) break;
    if (!change) co_return std::move(change).error();
    if (!*change) break;
    for (Told& told : told_of(**change, watcher.root)) events.push_back(std::move(told.event));
  }
  co_return events;
}

http::Task<Reply> get_events(Call& call, Plane plane, Watchers& watchers) {
  ATOLL_CO_TRY(NamedWatcher named, named_watcher(call, plane, watchers));
  if (std::exchange(named.watcher->busy, true))
    co_return Error(Code::kConflict, "the watcher is being read").with_reason("file_busy");
  auto events = co_await fetch_events(*named.watcher);
  named.watcher->busy = false;
  if (!events) co_return std::move(events).error();
  json::object object;
  object["events"] = std::move(*events);
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> remove_watcher(Call& call, Plane plane, Watchers& watchers) {
  ATOLL_CO_TRY(NamedWatcher named, named_watcher(call, plane, watchers));
  watchers.remove(named.id);
  co_return std::optional(json_reply(200, json::object()));
}

}  // namespace

void Watchers::sweep() {
  std::erase_if(watchers_, [](const auto& entry) { return is_over(*entry.second->sandbox); });
}

Result<std::string> Watchers::add(Watcher watcher) {
  sweep();
  size_t count = 0;
  for (const auto& [id, other] : watchers_) count += other->sandbox == watcher.sandbox ? 1 : 0;
  if (count >= kMaxWatchers)
    return Error(Code::kExhausted, "the sandbox has 32 watchers: remove one")
        .with_reason("too_many_operations");
  std::string id = random_text(kWatcherIdLength);
  watchers_.emplace(id, std::make_shared<Watcher>(std::move(watcher)));
  return id;
}

std::shared_ptr<Watchers::Watcher> Watchers::find(const Sandbox& sandbox,
                                                  const std::string& id) const {
  auto found = watchers_.find(id);
  bool is_its = found != watchers_.end() && found->second->sandbox->id() == sandbox.id();
  return is_its ? found->second : nullptr;
}

void add_watch_routes(Router& router, Plane plane, Watchers& watchers) {
  add_streaming(router, plane, "filesystem.Filesystem/WatchDir", watch_directory);
  auto bind = [plane, &watchers](auto action) {
    return [plane, &watchers, action](Call& call) { return action(call, plane, watchers); };
  };
  add_unary(router, plane, "filesystem.Filesystem/CreateWatcher", bind(create_watcher));
  add_unary(router, plane, "filesystem.Filesystem/GetWatcherEvents", bind(get_events));
  add_unary(router, plane, "filesystem.Filesystem/RemoveWatcher", bind(remove_watcher));
}

}  // namespace atl::api::e2b
