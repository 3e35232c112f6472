#include "api/v1/replay.h"

#include <boost/json/array.hpp>

#include "api/json_reader.h"
#include "api/json_reply.h"
#include "api/v1/diff.h"
#include "api/v1/file_json.h"
#include "api/v1/sandboxes.h"
#include "sandbox/replay.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::RecordedRun;
using sandbox::ReplayDifference;
using sandbox::Replayed;
using sandbox::ReplayRequest;
using sandbox::Sandbox;
using sandbox::Sandboxes;
using sandbox::Snapshots;

namespace {

constexpr size_t kMaxRunBytes = 32;

Result<ReplayRequest> parse_replay(std::string_view body) {
  ATOLL_TRY(json::object object, parse_object(body));
  ObjectReader reader(object);
  auto from = SnapshotId::parse(reader.text("from", SnapshotId::kLength));
  if (!from) reader.refuse("from", "is not the id of a snapshot");
  ReplayRequest request{.from = from.value_or(SnapshotId::draw())};
  if (auto names = reader.optional_texts("runs", sandbox::kMaxReplayedRuns, kMaxRunBytes)) {
    request.runs.emplace();
    for (const std::string& name : *names) {
      auto run = RecordedRun::parse(name);
      if (!run) reader.refuse("runs", "must be ids of execs, or of contexts with a run: c…/3");
      if (run) request.runs->push_back(*run);
    }
  }
  ATOLL_TRY_VOID(reader.finish());
  return request;
}

json::value difference_json(const std::optional<ReplayDifference>& difference) {
  if (!difference) return nullptr;
  json::object object;
  object["run"] = nullptr;
  if (difference->run) object["run"] = difference->run->string();
  object["in"] = difference->in;
  if (difference->change) {
    object["change"] = change_json(*difference->change);
    return object;
  }
  bool is_stream = difference->in == "stdout" || difference->in == "stderr";
  if (is_stream) object["offset"] = difference->offset;
  put_bytes(object, "recorded", difference->recorded);
  put_bytes(object, "replayed", difference->replayed);
  return object;
}

json::object replayed_json(const ReplayRequest& request, const Replayed& replayed) {
  json::object object;
  object["from"] = request.from.view();
  json::array runs, left;
  for (const sandbox::ReplayedRun& run : replayed.runs) {
    json::object shown{{"run", run.run.string()}, {"verdict", run.verdict}};
    shown["exit_code"] = nullptr;
    if (run.exit_code) shown["exit_code"] = *run.exit_code;
    runs.push_back(std::move(shown));
  }
  for (const sandbox::NotReplayed& run : replayed.not_replayed)
    left.push_back(json::object{{"run", run.run.string()}, {"why", run.why}});
  object["runs"] = std::move(runs);
  object["not_replayed"] = std::move(left);
  object["files_compared"] = replayed.files_compared;
  object["difference"] = difference_json(replayed.difference);
  return object;
}

http::Task<Reply> replay(Call& call, Sandboxes& sandboxes, Snapshots& snapshots) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY(ReplayRequest request, parse_replay(call.body));
  auto replayed = co_await sandbox::replay_runs(sandboxes, snapshots, sandbox, request);
  if (!replayed) co_return std::move(replayed).error();
  co_return std::optional(json_reply(200, replayed_json(request, *replayed)));
}

}  // namespace

void add_replay_route(Router& router, Sandboxes& sandboxes, Snapshots& snapshots) {
  auto action = [&sandboxes, &snapshots](Call& call) { return replay(call, sandboxes, snapshots); };
  router.add({.method = http::Method::kPost,
              .pattern = "/v1/sandboxes/{id}/replay",
              .action = action,
              .time = Route::Time::kLong});
}

}  // namespace atl::api::v1
